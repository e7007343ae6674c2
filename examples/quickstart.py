"""Train a team that must learn to talk, judge it, load its policy and play an episode with it.

    python examples/quickstart.py

One agent sees which landmark is the goal but cannot move; the other moves but does not know the
goal. Without a language of their own the best they can do is to wait in the middle.
"""

import jax
import jax.numpy as jnp
import numpy as np

import fp3o

STEPS = 200_000


def main() -> None:
    """Train, evaluate, load, act."""
    run = fp3o.train(preset="demo", sharing="partial", steps=STEPS)
    print(fp3o.evaluate(run.path, episodes=200)["policies"])

    policy = fp3o.Policy.load(run.path)  # NumPy only: the robot needs no JAX
    game = fp3o.make("mpe/simple_speaker_listener")
    state, hidden_state, earned = game.reset(jax.random.key(0)), None, 0.0
    for _ in range(25):
        observation = game.observe(state)
        actions, hidden_state = policy.act(
            np.asarray(observation.obs), hidden_state, np.asarray(observation.action_mask)
        )
        state, reward, *_ = game.step(state, jnp.asarray(actions), jax.random.key(0))
        earned += float(reward.mean()) / game.spec.shares
    print(f"one episode: {earned:.2f} for each agent")


if __name__ == "__main__":
    main()
