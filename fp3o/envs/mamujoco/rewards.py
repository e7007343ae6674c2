"""What a body is paid for, when it has failed, and how an episode begins.

The formulas are written once for NumPy and JAX (`xp` is the module), over the last axes of the
arrays of a `Moment`; any batch axes may stand in front.
"""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import mujoco
import numpy as np

Moment = Mapping[str, Any]
"""Fields of a simulation by their MuJoCo names: qpos, qvel, xpos, ..."""


class Step(NamedTuple):
    """What a reward may depend on."""

    moment: Moment
    """The simulation after the step."""
    before: Any
    """The gauge before the step."""
    after: Any
    """The gauge after it."""
    action: Any
    """The controls that were asked for, before MuJoCo's limits."""
    healthy: Any
    """True where the body has not failed."""
    dt: float


@dataclass(frozen=True)
class Rules:
    """A task on a body."""

    gauge: Callable[[Any, Moment], Any]
    """The number whose change is paid for: where the body is, or how far from a goal."""
    reward: Callable[[Any, Step], Any]
    healthy: Callable[[Any, Moment], Any] | None
    """False where the body has failed, which ends the episode; None: it cannot fail."""
    start: Callable[[np.random.Generator, np.ndarray, int], tuple[np.ndarray, np.ndarray]]
    """Random numbers, qpos at rest and the number of velocities -> qpos and qvel at the start."""
    fields: tuple[str, ...] = ()
    """What gauge, reward and healthy read beside qpos and qvel."""


def distance_along_x(xp: Any, moment: Moment) -> Any:
    """The x of the root joint."""
    return moment["qpos"][..., 0]


def running(
    weight: int | float = 1.0,
    control: int | float = 0.0,
    alive: int | float = 0.0,
    contact: Callable[[Any, Moment], Any] | None = None,
    posthumous: bool = False,
) -> Callable[[Any, Step], Any]:
    """Speed along x, a bonus for being healthy, costs of control and contact.

    With `posthumous`, the bonus is paid in the failing step too, as gym did before version 3.
    """

    def reward(xp: Any, step: Step) -> Any:
        speed = (step.after - step.before) / step.dt
        bonus = alive if posthumous else alive * step.healthy
        earned = weight * speed + bonus - control * xp.square(step.action).sum(-1)
        return earned if contact is None else earned - contact(xp, step.moment)

    return reward


def noise(
    scale: float, velocity: float | None = None, normal: bool = False
) -> Callable[[np.random.Generator, np.ndarray, int], tuple[np.ndarray, np.ndarray]]:
    """The rest position, shaken: uniformly, or the velocities with a normal distribution."""

    def start(
        random: np.random.Generator, rest: np.ndarray, nv: int
    ) -> tuple[np.ndarray, np.ndarray]:
        qpos = rest + random.uniform(-scale, scale, rest.size)
        if normal:
            return qpos, scale * random.standard_normal(nv)
        width = scale if velocity is None else velocity
        return qpos, random.uniform(-width, width, nv)

    return start


def cheetah() -> Rules:
    """Run; nothing can go wrong."""
    return Rules(distance_along_x, running(control=0.1), None, noise(0.1, normal=True))


def swimmer() -> Rules:
    """Swim; nothing can go wrong."""
    return Rules(distance_along_x, running(control=1e-4), None, noise(0.1))


def coupled_cheetah() -> Rules:
    """Two cheetahs, paid for their mean speed and mean effort."""

    def middle(xp: Any, moment: Moment) -> Any:
        return (moment["qpos"][..., 0] + moment["qpos"][..., 9]) / 2

    return Rules(middle, running(control=0.05), None, noise(0.1, normal=True))


def hopper(paper: bool) -> Rules:
    """Hop without falling over."""

    def healthy(xp: Any, moment: Moment) -> Any:
        qpos, qvel = moment["qpos"], moment["qvel"]
        rest = xp.concatenate([qpos[..., 2:], qvel], -1)
        upright = (qpos[..., 1] > 0.7) & (xp.abs(qpos[..., 2]) < 0.2)
        return upright & (xp.abs(rest) < 100).all(-1)

    reward = running(control=1e-3, alive=1.0, posthumous=paper)
    return Rules(distance_along_x, reward, healthy, noise(5e-3))


def walker(paper: bool) -> Rules:
    """Walk without falling over."""

    def healthy(xp: Any, moment: Moment) -> Any:
        height, angle = moment["qpos"][..., 1], moment["qpos"][..., 2]
        return (height > 0.8) & (height < 2.0) & (xp.abs(angle) < 1.0)

    reward = running(control=1e-3, alive=1.0, posthumous=paper)
    return Rules(distance_along_x, reward, healthy, noise(5e-3))


def ant(paper: bool) -> Rules:
    """Walk on four legs; forces from outside cost, except in the paper, where they read zero."""

    def torso(xp: Any, moment: Moment) -> Any:
        return moment["xpos"][..., 1, 0]

    def contact(xp: Any, moment: Moment) -> Any:
        return 5e-4 * xp.square(xp.clip(moment["cfrc_ext"], -1, 1)).sum((-2, -1))

    def healthy(xp: Any, moment: Moment) -> Any:
        qpos, qvel = moment["qpos"], moment["qvel"]
        finite = xp.isfinite(qpos).all(-1) & xp.isfinite(qvel).all(-1)
        return finite & (qpos[..., 2] >= 0.2) & (qpos[..., 2] <= 1.0)

    reward = running(control=0.5, alive=1.0, contact=None if paper else contact, posthumous=paper)
    fields = ("xpos",) if paper else ("xpos", "cfrc_ext")
    return Rules(torso, reward, healthy, noise(0.1, normal=True), fields)


def humanoid(model: mujoco.MjModel) -> Rules:
    """Walk upright; paid by the speed of the centre of mass."""
    share = model.body_mass / model.body_mass.sum()

    def centre(xp: Any, moment: Moment) -> Any:
        return (moment["xipos"][..., 0] * share).sum(-1)

    def contact(xp: Any, moment: Moment) -> Any:
        return xp.minimum(5e-7 * xp.square(moment["cfrc_ext"]).sum((-2, -1)), 10.0)

    def healthy(xp: Any, moment: Moment) -> Any:
        return (moment["qpos"][..., 2] > 1.0) & (moment["qpos"][..., 2] < 2.0)

    reward = running(weight=1.25, control=0.1, alive=5.0, contact=contact)
    return Rules(centre, reward, healthy, noise(0.01), ("xipos", "cfrc_ext"))


def standing_up(model: mujoco.MjModel) -> Rules:
    """Get up from the floor: paid by the height that is reached."""

    def height(xp: Any, moment: Moment) -> Any:
        return moment["qpos"][..., 2]

    def reward(xp: Any, step: Step) -> Any:
        impact = 5e-7 * xp.square(step.moment["cfrc_ext"]).sum((-2, -1))
        effort = 0.1 * xp.square(step.action).sum(-1)
        return step.after / model.opt.timestep - effort - xp.minimum(impact, 10.0) + 1

    return Rules(height, reward, None, noise(0.01), ("cfrc_ext",))


def reacher(paper: bool) -> Rules:
    """Bring the fingertip to the target. The paper pays for where it was before the step."""

    def gap(xp: Any, moment: Moment) -> Any:
        xpos = moment["xpos"]
        return -xp.sqrt(xp.square(xpos[..., 3, :] - xpos[..., 4, :]).sum(-1))

    def reward(xp: Any, step: Step) -> Any:
        near = step.before if paper else step.after
        return near - xp.square(step.action).sum(-1)

    shaken = noise(0.1, 0.005)

    def start(
        random: np.random.Generator, rest: np.ndarray, nv: int
    ) -> tuple[np.ndarray, np.ndarray]:
        qpos, qvel = shaken(random, rest, nv)
        goal = random.uniform(-0.2, 0.2, 2)
        while not paper and np.linalg.norm(goal) >= 0.2:  # the paper: anywhere in the square
            goal = random.uniform(-0.2, 0.2, 2)
        qpos[-2:], qvel[-2:] = goal, 0
        return qpos, qvel

    return Rules(gap, reward, None, start, ("xpos",))


def pusher(tip: int, thing: int, goal: int) -> Rules:
    """Push a thing to its goal with the tip of an arm."""

    def gap(xp: Any, moment: Moment, one: int, other: int) -> Any:
        return xp.sqrt(
            xp.square(moment["xpos"][..., one, :] - moment["xpos"][..., other, :]).sum(-1)
        )

    def to_goal(xp: Any, moment: Moment) -> Any:
        return -gap(xp, moment, thing, goal)

    def reward(xp: Any, step: Step) -> Any:
        effort = 0.1 * xp.square(step.action).sum(-1)
        return step.after - effort - 0.5 * gap(xp, step.moment, thing, tip)

    def start(
        random: np.random.Generator, rest: np.ndarray, nv: int
    ) -> tuple[np.ndarray, np.ndarray]:
        qpos, qvel = rest.copy(), random.uniform(-0.005, 0.005, nv)
        place = random.uniform((-0.3, -0.2), (0.0, 0.2))
        while np.linalg.norm(place) <= 0.17:
            place = random.uniform((-0.3, -0.2), (0.0, 0.2))
        qpos[-4:-2], qpos[-2:], qvel[-4:] = place, 0, 0
        return qpos, qvel

    return Rules(to_goal, reward, None, start, ("xpos",))


def pendulum() -> Rules:
    """Keep a pole upright."""

    def healthy(xp: Any, moment: Moment) -> Any:
        qpos, qvel = moment["qpos"], moment["qvel"]
        finite = xp.isfinite(qpos).all(-1) & xp.isfinite(qvel).all(-1)
        return finite & (xp.abs(qpos[..., 1]) <= 0.2)

    def reward(xp: Any, step: Step) -> Any:
        return 1.0 * step.healthy

    return Rules(distance_along_x, reward, healthy, noise(0.01))


def double_pendulum() -> Rules:
    """Keep a pole on a pole upright."""

    def height(xp: Any, moment: Moment) -> Any:
        return moment["site_xpos"][..., 0, 2]

    def healthy(xp: Any, moment: Moment) -> Any:
        return height(xp, moment) > 1

    def reward(xp: Any, step: Step) -> Any:
        speed = step.moment["qvel"]
        away = 0.01 * step.moment["site_xpos"][..., 0, 0] ** 2 + (step.after - 2) ** 2
        swing = 1e-3 * speed[..., 1] ** 2 + 5e-3 * speed[..., 2] ** 2
        return 10.0 * step.healthy - away - swing

    return Rules(height, reward, healthy, noise(0.1, normal=True), ("site_xpos",))
