"""A custom metric: how far apart the agents are at the end of an episode.

    python examples/custom_metric.py

A metric that an environment names in `EnvSpec.episode_metrics` is logged during training
(`episode_gap`, `eval_gap`), is part of results.json, and can be read from a run. Its declaration
gives it a label, a unit and a curve in the report.
"""

import dataclasses

import jax.numpy as jnp
from custom_environment import Meeting

import fp3o

fp3o.register_metric("gap", label="Gap between the agents", unit="m", better="lower")


class MeasuredMeeting(Meeting):
    """The same environment with a metric."""

    @property
    def spec(self):
        """The same task; `gap` is the name of the metric."""
        return dataclasses.replace(super().spec, episode_metrics=("gap",))

    def episode_metrics(self, state):
        """Distance between the outermost agents when the episode ends."""
        return jnp.array([state.x.max() - state.x.min()])


def main(steps=50_000):
    """Train, then print the metric over training."""
    run = fp3o.train(MeasuredMeeting(), num_envs=16, rollout=10, steps=steps, final_episodes=100)
    gap = run.series("episode_gap")
    print(f"mean gap at the first step {gap.value[0, 0]:.2f}, at the last {gap.value[0, -1]:.2f}")


if __name__ == "__main__":
    main()
