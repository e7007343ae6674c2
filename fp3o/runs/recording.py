"""Datasets of a policy's episodes in Minari's format, for offline learning and analysis.

An episode of a dataset is one episode of the team, `t` steps:

| part            | content                                                                       |
|-----------------|-------------------------------------------------------------------------------|
| `observations`  | by agent name: `(t + 1, f_i)`, the last one before the reset                  |
| `actions`       | by agent name, as the agent's space has them: `(t,)`, `(t, d_i)`, `(t, a_i)`  |
| `rewards`       | `(t,)` of the team: their sum is the return that an evaluation reports        |
| `terminations`  | `(t,)`, true where the task ended the episode                                 |
| `truncations`   | `(t,)`, true where a time limit did                                           |
| `infos`         | `reward`, `alive` `(t,)`, and `action_mask` of choices `(t, a_i)`, by name     |
"""

import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from gymnasium import spaces

from fp3o.errors import MissingExtraError, SettingError, UserError, printable
from fp3o.options import check_seeds
from fp3o.policy import Policy
from fp3o.policy.actions import mask_indices, own_action, own_choices, own_dimensions
from fp3o.policy.describe import policy_facts
from fp3o.policy.schema import to_plain
from fp3o.runs.limits import check_episodes
from fp3o.runs.source import PolicyChoice, PolicySource, load_policy
from fp3o.runs.trajectories import PlayedEpisode, PlaySettings, play_episodes
from fp3o.spec import ActionSpace, EnvSpec
from fp3o.training.host_rollout import disable_async_dispatch

DATASET_NAME = re.compile(r"(?:[-\w]{2,}/|(?:[-\w]+/){2,})?[-\w]+-v\d+", re.ASCII)
"""Names of datasets: folders, a name and a version. Minari reads no folder of one letter."""

METADATA_KEY = "fp3o"
"""Key of the task, the policy and its origin in the metadata of a dataset."""


def record(
    source: PolicySource,
    out: str,
    episodes: int = 100,
    seed: int = 0,
    deterministic: bool = True,
    **choice: Unpack[PolicyChoice],
) -> Path:
    """Write episodes of a policy as a Minari dataset, and return its folder.

    The episodes are those of `fp3o.evaluate` with the same seed and number. Needs the extra
    `minari`.

    Args:
        source: a run, a policy, or the path of a run directory or a policy folder.
        out: name of the dataset, such as `team/listener-v0`: a folder below the one that the
            environment variable `MINARI_DATASETS_PATH` names, by default `~/.minari/datasets`.
            Nothing is written elsewhere.
        episodes: number of episodes.
        seed: random seed of the episodes.
        deterministic: take the most likely actions; false: sample them.
        **choice: of a run, `which` of its policies, `best` (default) or `last`, and
            `policy_seed`, by default the one with the best evaluation. `trust=True` allows the
            policy to name a task or a network that has to be imported.
    """
    disable_async_dispatch()  # before anything uses the CPU
    if episodes < 1:
        raise SettingError(f"episodes must be at least 1, got {episodes}")
    check_episodes(episodes)
    check_seeds(seed, 1)
    return _write_dataset(
        load_policy(source, **choice), out, episodes, PlaySettings(seed, deterministic)
    )


def _write_dataset(policy: Policy, name: str, episodes: int, how: PlaySettings) -> Path:
    """Play episodes and write them batch by batch."""
    minari, spec = _import_minari(), policy.card.spec
    if clash := [agent for agent in spec.agent_names if "/" in agent or agent in ("", ".")]:
        raise SettingError(f"a dataset cannot have a key {printable(repr(clash[0]), 80)}")
    folder = _free_folder(name, minari)
    dataset: Any = None
    for batch in play_episodes(policy, episodes, how):
        buffers = [_buffer(minari, spec, episode) for episode in batch]
        with _writing(folder):
            if dataset is not None:
                dataset.update_dataset_from_buffer(buffers)
            elif buffers:
                with _removed_on_failure(folder):
                    dataset = _create(minari, name, buffers, policy, how)
    if dataset is None:
        raise UserError(f"no episode of {printable(spec.name)} ended: nothing was written")
    return folder


def _import_minari() -> Any:
    try:
        import h5py  # noqa: F401  (the format of the data)
        import minari
    except ImportError as error:
        raise MissingExtraError("minari", "minari") from error
    return minari


def _free_folder(name: str, minari: Any) -> Path:
    """Where the dataset goes; raises if the name is not one of Minari's or is taken."""
    if not DATASET_NAME.fullmatch(name):
        raise SettingError(
            f"{printable(repr(name), 80)} is not the name of a dataset: write letters, digits, - "
            "and _ with a version at the end, in folders (of two letters or more) or not, such as "
            "team/listener-v0"
        )
    with _writing(Path(name)):
        folder = Path(minari.storage.get_dataset_path(name))
    _require_free(folder)
    return folder


def _require_free(folder: Path) -> None:
    if folder.exists():
        raise SettingError(f"the dataset {folder} exists: choose another name or version")


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn errors of the disk into one that says what to do."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write the dataset {folder}: {error.strerror or error}. Set "
            "MINARI_DATASETS_PATH to a folder that you can write to and that has space"
        ) from error


@contextmanager
def _removed_on_failure(folder: Path) -> Iterator[None]:
    """Leave no folder if its first batch is interrupted or fails: it cannot be read."""
    _require_free(folder)
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _create(minari: Any, name: str, buffers: list[Any], policy: Policy, how: PlaySettings) -> Any:
    """A dataset with its first episodes and its metadata."""
    spec, origin = policy.card.spec, to_plain(policy.card.provenance)
    kind = "most likely" if how.deterministic else "sampled"
    with warnings.catch_warnings():
        # Minari warns about everything that is not given: authors, an environment of Gymnasium.
        warnings.simplefilter("ignore", UserWarning)
        dataset = minari.create_dataset_from_buffers(
            dataset_id=name,
            buffer=buffers,
            observation_space=_observation_space(spec),
            action_space=_team_action_space(spec),
            algorithm_name=str(origin.get("algorithm", "fp3o")),
            description=f"Episodes of a team on {spec.name} with {kind} actions.",
            requirements=[f"fp3o=={version('fp3o')}"],
        )
    facts = policy_facts(policy.card)
    facts |= {"seed": how.seed, "deterministic": how.deterministic, "provenance": origin}
    dataset.storage.update_metadata({METADATA_KEY: facts})
    return dataset


def _observation_space(spec: EnvSpec) -> Any:
    sizes = zip(spec.agent_names, spec.agent_obs_sizes, strict=True)
    return spaces.Dict({name: _vectors(size) for name, size in sizes})


def _team_action_space(spec: EnvSpec) -> Any:
    agents = enumerate(spec.agent_names)
    return spaces.Dict({name: _own_action_space(spec.actions, i) for i, name in agents})


def _own_action_space(actions: ActionSpace, agent: int) -> Any:
    """The space of an agent's own actions, as `own_action` gives them."""
    choices, size = own_choices(actions, agent), own_dimensions(actions, agent)
    if not choices:
        return _vectors(size)
    one = len(choices) == 1
    discrete = spaces.Discrete(choices[0]) if one else spaces.MultiDiscrete([*choices])
    return spaces.Tuple((discrete, _vectors(size))) if size else discrete


def _vectors(size: int) -> Any:
    return spaces.Box(-np.inf, np.inf, (size,), np.float32)


def _buffer(minari: Any, spec: EnvSpec, played: PlayedEpisode) -> Any:
    """One episode as Minari takes it, by agent name and without padding."""
    agents = [*enumerate(spec.agent_names)]
    infos = {
        "reward": {name: played.rewards[:, i] for i, name in agents},
        "alive": {name: played.alive[:, i] for i, name in agents},
    }
    masks = {
        name: played.action_mask[:, i, mask_indices(spec.actions, i)]
        for i, name in agents
        if own_choices(spec.actions, i)
    }
    return minari.data_collector.EpisodeBuffer(
        observations={
            name: played.obs[:, i, : spec.agent_obs_sizes[i]].astype(np.float32)
            for i, name in agents
        },
        actions={name: own_action(spec.actions, i, played.actions[:, i]) for i, name in agents},
        rewards=played.team_rewards,
        terminations=played.terminated,
        truncations=played.truncated,
        infos=infos | ({"action_mask": masks} if masks else {}),
    )
