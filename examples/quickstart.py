"""Train a team that has to invent a language, evaluate it, and run its policy.

    python examples/quickstart.py

The speaker observes which landmark is the goal but cannot move; the listener moves but does not
observe the goal. Without communication the best policy is to wait at the centre of the landmarks.
"""

import jax

import fp3o

STEPS = 200_000


def main() -> None:
    """Train, evaluate, load and run a policy."""
    run = fp3o.train(preset="demo", sharing="partial", steps=STEPS)
    print(run.evaluate(episodes=200)["policies"])

    policy = fp3o.Policy.load(run.path)  # needs NumPy only
    env = fp3o.make(run.config.task, num_envs=100)
    state, timestep = env.reset(jax.random.key(0))
    hidden_state, total = None, 0.0
    for _ in range(25):
        actions, hidden_state = policy.act(timestep.obs, hidden_state, timestep.action_mask)
        state, timestep = env.step(state, actions)
        total += float(timestep.reward.mean()) / env.spec.reward_sum_over
    print(f"mean of 100 episodes: {total:.2f} per agent")


if __name__ == "__main__":
    main()
