"""The particle tasks of the paper's code in plain Python loops, an independent reference.

Written from the rules of on-policy's environments, float64, one world, one agent at a time; nothing
is shared with the library. Per step: an agent's velocity loses a quarter, gains a tenth of the
force on it, and moves the agent for a tenth of a second. An action is one-hot: the second entry
pushes right, the third left, the fourth up, the fifth down, with force 5.
"""

import math

import numpy as np

Vector = list[float]


class Body:
    """An agent."""

    def __init__(self, place: Vector, moves: bool, talks: bool) -> None:
        self.place = [float(c) for c in place]
        self.speed = [0.0, 0.0]
        self.moves, self.talks = moves, talks
        self.said: Vector = []


class World:
    """One episode of one task."""

    words: int
    size: float
    solid: bool
    roles: list[tuple[bool, bool]]
    """Whether each agent moves, and whether it talks."""

    def __init__(self, places: np.ndarray, landmarks: np.ndarray, goals: list[int]) -> None:
        self.agents = [Body(x, *role) for x, role in zip(places.tolist(), self.roles, strict=True)]
        self.landmarks = [[float(c) for c in x] for x in landmarks.tolist()]
        self.goals = goals
        self.clock = 0
        for agent in self.agents:
            agent.said = [0.0] * self.words

    def step(self, moves: list[int], words: list[int]) -> tuple[list[float], bool]:
        """The reward of every agent, the sum over all, and whether the episode has ended."""
        forces = []
        for agent, move in zip(self.agents, moves, strict=True):
            one_hot = [1.0 if choice == move else 0.0 for choice in range(5)]
            forces.append([5 * (one_hot[1] - one_hot[2]), 5 * (one_hot[3] - one_hot[4])])
            if not agent.moves:
                forces[-1] = [0.0, 0.0]
        if self.solid:
            self.collide(forces)
        for agent, force, word in zip(self.agents, forces, words, strict=True):
            for axis in range(2):
                agent.speed[axis] = 0.75 * agent.speed[axis] + 0.1 * force[axis]
                agent.place[axis] += 0.1 * agent.speed[axis]
            agent.said = [1.0 if agent.talks and w == word else 0.0 for w in range(self.words)]
        self.clock += 1
        total = sum(self.reward(i) for i in range(len(self.agents)))
        return [total] * len(self.agents), self.clock >= 25

    def collide(self, forces: list[Vector]) -> None:
        """Add the contact forces of every pair."""
        for a in range(len(self.agents)):
            for b in range(a + 1, len(self.agents)):
                x, y = self.agents[a].place, self.agents[b].place
                distance = math.dist(x, y)
                depth = 1e-3 * float(np.logaddexp(0.0, (2 * self.size - distance) / 1e-3))
                for axis in range(2):
                    force = 100.0 * depth * (x[axis] - y[axis]) / distance
                    forces[a][axis] += force
                    forces[b][axis] -= force

    def reward(self, i: int) -> float:
        raise NotImplementedError

    def see(self, i: int) -> Vector:
        raise NotImplementedError

    def seen_from(self, i: int, points: list[Vector]) -> Vector:
        """Points relative to an agent, in one row."""
        x, y = self.agents[i].place
        return [c for point in points for c in (point[0] - x, point[1] - y)]


class Reference(World):
    words, size, solid, roles = 10, 0.05, False, [(True, True)] * 2

    def reward(self, i: int) -> float:
        other, goal = self.agents[1 - i], self.landmarks[self.goals[1 - i]]
        return -(math.dist(other.place, goal) ** 2)

    def see(self, i: int) -> Vector:
        colour = [0.25, 0.25, 0.25]
        colour[self.goals[1 - i]] = 0.75
        near = self.seen_from(i, self.landmarks)
        return self.agents[i].speed + near + colour + self.agents[1 - i].said


class SpeakerListener(World):
    words, size, solid, roles = 3, 0.075, False, [(False, True), (True, False)]

    def reward(self, i: int) -> float:
        return -(math.dist(self.agents[1].place, self.landmarks[self.goals[1]]) ** 2)

    def see(self, i: int) -> Vector:
        if i == 0:
            colour = [0.15, 0.15, 0.15]
            colour[self.goals[1]] = 0.65
            return colour
        return self.agents[1].speed + self.seen_from(1, self.landmarks) + self.agents[0].said


class Spread(World):
    words, size, solid, roles = 2, 0.15, True, [(True, False)] * 3

    def reward(self, i: int) -> float:
        total = 0.0
        for landmark in self.landmarks:
            total -= min(math.dist(agent.place, landmark) for agent in self.agents)
        for agent in self.agents:  # an agent collides with itself: a penalty at every step
            if math.dist(agent.place, self.agents[i].place) < 2 * self.size:
                total -= 1.0
        return total

    def see(self, i: int) -> Vector:
        others = [agent for j, agent in enumerate(self.agents) if j != i]
        row = self.agents[i].speed + self.agents[i].place + self.seen_from(i, self.landmarks)
        row = row + self.seen_from(i, [other.place for other in others])
        return row + [c for other in others for c in other.said]


TASKS = {
    "simple_reference": Reference,
    "simple_speaker_listener": SpeakerListener,
    "simple_spread": Spread,
}


MODULES = {
    "simple_reference": "simple_reference_v3",
    "simple_speaker_listener": "simple_speaker_listener_v4",
    "simple_spread": "simple_spread_v3",
}
