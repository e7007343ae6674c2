"""What `check_env` saw of an environment: its specification, and what happened in random play."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fp3o.envs.random_play import RandomPlay
from fp3o.spec import ActionSpace, Box, EnvSpec, ImageShape, Mixed

Facts = dict[str, Any]
"""JSON values by name."""


def spec_facts(spec: EnvSpec, limit: int | None, renderable: bool) -> Facts:
    """What the specification of a task says."""
    return {
        "agents": list(spec.agent_names),
        "agent_types": list(spec.agent_types),
        "observation_sizes": list(spec.agent_obs_sizes),
        "observation_image": spec.image and list(spec.image),
        "state_size": spec.state_size,
        "state_image": spec.state_image and list(spec.state_image),
        "actions": action_text(spec.actions),
        "action_names": [list(names) for names in spec.action_names],
        "max_episode_steps": limit,
        "truncates": spec.truncates,
        "reward_sum_over": spec.reward_sum_over,
        "episode_metrics": list(spec.episode_metrics),
        "renderable": renderable,
    }


def play_facts(spec: EnvSpec, play: RandomPlay) -> Facts:
    """What happened in random play: lengths, rewards, masks, deaths."""
    steps, reward = play.steps, play.steps.reward[1:]
    ended = np.asarray(steps.terminated | steps.truncated)[1:]
    lengths = episode_lengths(ended)
    acts = steps.alive[:-1, :, :, None] & spec.actions.mask
    unavailable = acts & ~steps.action_mask[:-1]
    # Agents that are dead after a step that did not end the episode.
    died = (~steps.alive[1:] & ~ended[..., None]).any()
    return {
        "episode_lengths": [min(lengths), max(lengths)] if lengths else None,
        "truncations": int(steps.truncated[1:].sum()),
        "shared_reward": bool((reward == reward[..., :1]).all()),
        "reward_range": [float(reward.min()), float(reward.max())],
        "unavailable_choices": float(unavailable.sum() / max(acts.sum(), 1)),
        "agents_die": bool(died),
    }


def episode_lengths(ended: np.ndarray) -> list[int]:
    """Lengths of the episodes that ended in a rollout `(t, e)`."""
    found, since = [], np.zeros(ended.shape[1], int)
    for row in ended:
        since += 1
        found += since[row].tolist()
        since[row] = 0
    return found


def action_text(actions: ActionSpace) -> str:
    """`5 x 10` choices per agent, or the lengths of its vectors, or both."""
    if isinstance(actions, Mixed):
        return f"{action_text(actions.discrete)} and {action_text(actions.box)}"
    if isinstance(actions, Box):
        same = len({*actions.sizes}) == 1
        return "vectors of " + ", ".join(map(str, actions.sizes[:1] if same else actions.sizes))
    each = [" x ".join(map(str, sizes)) for sizes in actions.sizes]
    return each[0] if len({*each}) == 1 else ", ".join(each)


def fact_lines(spec: EnvSpec, facts: Mapping[str, Any]) -> Iterator[str]:
    """The facts as lines of text; those of random play only where it took place."""
    if not facts:
        return
    kinds = len({*spec.agent_types})
    types = f"{kinds} type{'s' * (kinds > 1)}"
    yield _line("agents", f"{spec.num_agents} of {types}: {_some(facts['agents'])}")
    yield _line("observation", _size_text(facts["observation_sizes"], spec.image))
    yield _line("state", _size_text([spec.state_size], spec.state_image))
    unit = "" if isinstance(spec.actions, Box) else " choices"
    names = [*dict.fromkeys("/".join(names) for names in facts["action_names"])]
    yield _line("actions", f"{facts['actions']}{unit}" + (f": {_some(names)}" if names else ""))
    yield _line("episodes", _episode_text(facts))
    if "reward_range" in facts:
        low, high = facts["reward_range"]
        mode = "the same for all agents" if facts["shared_reward"] else "differs between agents"
        yield _line("reward", f"{mode}, {low:.4g} to {high:.4g} per step")
        share = facts["unavailable_choices"]
        if not isinstance(spec.actions, Box):
            masks = f"{100 * share:.0f} % of the choices were masked" if share else "never used"
            yield _line("masks", masks)
        yield _line("deaths", "agents die before the end" if facts["agents_die"] else "none seen")
    if facts["episode_metrics"]:
        yield _line("metrics", ", ".join(facts["episode_metrics"]))
    yield _line("rendering", "yes" if facts["renderable"] else "no")


def _line(name: str, text: str) -> str:
    return f"  {name:12} {text}"


def _some(names: list[str], most: int = 12) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _size_text(sizes: list[int], image: ImageShape | None) -> str:
    same = len({*sizes}) == 1
    text = f"{', '.join(map(str, sizes[:1] if same else sizes))} numbers per agent"
    return text + (f", of which an image of {' x '.join(map(str, image))}" if image else "")


def _episode_text(facts: Mapping[str, Any]) -> str:
    limit, seen = facts["max_episode_steps"], facts.get("episode_lengths")
    parts = [f"at most {limit} steps" if limit else "no known limit"]
    parts.append("a time limit truncates" if facts["truncates"] else "no truncation")
    if seen:
        parts.append(f"{' to '.join(dict.fromkeys(map(str, seen)))} steps seen")
    return "; ".join(parts)
