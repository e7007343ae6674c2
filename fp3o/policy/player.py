"""A policy that plays episodes: it remembers the hidden state from step to step."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fp3o.errors import SettingError

if TYPE_CHECKING:
    from fp3o.policy.policy import Policy


class Player:
    """Plays episodes of one environment, or a batch, with a policy.

        player = policy.player()
        observations, infos = env.reset()  # a PettingZoo ParallelEnv
        while env.agents:
            observations, rewards, *ends, infos = env.step(player.act(observations))

    Call `reset` before every further episode. A player is not shared by threads; its policy may be.
    """

    def __init__(
        self,
        policy: "Policy",
        deterministic: bool = True,
        random: np.random.Generator | None = None,
    ):
        self.policy, self._deterministic, self._random = policy, deterministic, random
        self.hidden_state: np.ndarray | None = None

    def reset(self) -> None:
        """Start an episode: forget the hidden state."""
        self.hidden_state = None

    def act(self, obs: Any, action_mask: Any = None, episode_start: Any = None) -> Any:
        """The actions of one step; arguments and actions as in `Policy.act`.

        The observation of an agent may also be PettingZoo's dict of `observation` and
        `action_mask`.
        """
        if isinstance(obs, Mapping) and any(isinstance(x, Mapping) for x in obs.values()):
            obs, masks = _split_masks(obs)
            if not isinstance(action_mask, Mapping | None):
                raise SettingError("give masks by agent name, as the observations")
            action_mask = {**masks, **(action_mask or {})}
        actions, self.hidden_state = self.policy.act(
            obs,
            self.hidden_state,
            action_mask,
            self._deterministic,
            self._random,
            episode_start,
        )
        return actions


def _split_masks(obs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Observations and action masks of agents, some of which have both in one dict."""
    pairs = {name: x if isinstance(x, Mapping) else {"observation": x} for name, x in obs.items()}
    for name, x in pairs.items():
        if "observation" not in x:
            raise SettingError(
                f"the observation of agent {name!r} is a dict without 'observation': a policy "
                "takes one array per agent; flatten other dicts as the task's adapter does"
            )
    masks = {name: x["action_mask"] for name, x in pairs.items() if "action_mask" in x}
    return {name: x["observation"] for name, x in pairs.items()}, masks
