"""Datasets of a policy's episodes: written, read back, and equal to evaluations."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fp3o
from fp3o.cli.main import main
from fp3o.envs.registry import get_task
from fp3o.errors import MissingExtraError, SettingError, UserError
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.policy import Policy
from fp3o.policy.export import write_policy
from fp3o.runs import trajectories

SPEAKER = "mpe/simple_speaker_listener"


def untrained(task: str, folder: Path, **settings: Any) -> Policy:
    """A policy with random weights, which acts differently in every state."""
    config = Config(hidden=(8,), sequence_length=8, output_gain=3.0, **settings)
    setup = Setup(get_task(task).spec(), config)
    provenance = {"step": 7, "algorithm": "mappo"}
    return write_policy(folder, setup, setup.init(0).actor, provenance)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all datasets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def load(name: str) -> Any:
    import minari

    return minari.load_dataset(name)


def replayed(policy: Policy, episode: Any, random: Any = None) -> dict[str, np.ndarray]:
    """The actions of a policy that observes a recorded episode."""
    player, actions = policy.player(random is None, random), []
    for t in range(len(episode.rewards)):
        obs = {name: x[t] for name, x in episode.observations.items()}
        masks = {name: x[t] for name, x in episode.infos["action_mask"].items()}
        actions.append(player.act(obs, masks))
    return {name: np.stack([step[name] for step in actions]) for name in actions[0]}


def test_round_trip(
    root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Actions are those of the policy, returns those of an evaluation with the same seed."""
    monkeypatch.setattr("fp3o.runs.evaluation.evaluate_baselines", lambda *_: {})
    policy = untrained(SPEAKER, tmp_path / "policy", gru_size=4)
    words = ["--out", "team/listener-v0", "--episodes", "5", "--seed", "3"]
    assert main(["record", str(tmp_path / "policy"), *words]) == 0
    assert capsys.readouterr().out.strip() == str(root / "team" / "listener-v0")
    dataset = load("team/listener-v0")
    episodes = [*dataset.iterate_episodes()]
    assert dataset.total_episodes == len(episodes) == 5 and dataset.total_steps == 5 * 25
    for episode in episodes:
        assert {k: x.shape for k, x in episode.observations.items()} == {
            "listener_0": (26, 11), "speaker_0": (26, 3),
        }  # fmt: skip
        assert episode.terminations[-1] and not episode.terminations[:-1].any()
        assert not episode.truncations.any()
        for name, actions in replayed(policy, episode).items():
            assert actions.shape == (25,) and (actions == episode.actions[name]).all()
        assert dataset.action_space.contains({k: x[0] for k, x in episode.actions.items()})
        own = np.mean([x.sum() for x in episode.infos["reward"].values()])
        scale = policy.card.spec.reward_sum_over
        assert episode.rewards.sum() == pytest.approx(own / scale, rel=1e-5)
    evaluated = fp3o.evaluate(tmp_path / "policy", 5, seed=3)["policies"][0]
    returns = [episode.rewards.sum() for episode in episodes]
    assert np.mean(returns) == pytest.approx(evaluated["return"], rel=1e-4)
    assert np.std(returns, ddof=1) == pytest.approx(evaluated["std"], rel=1e-3)
    facts = dataset.storage.metadata["fp3o"]
    assert facts["task"] == SPEAKER and facts["seed"] == 3 and facts["deterministic"]
    assert facts["provenance"]["step"] == 7 and facts["agents"][1]["name"] == "listener_0"
    assert {path.name for path in root.iterdir()} == {"team"}


def test_sampled_actions_in_batches(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second batch is appended; the same seed gives the same dataset, another one does not."""
    policy = untrained("probe/credit", tmp_path / "policy")
    spec = policy.card.spec
    per_step = spec.num_agents * (2 * spec.obs_size + spec.actions.num_outputs + 4)
    limit = get_task("probe/credit").max_episode_steps()
    monkeypatch.setattr(trajectories, "MAX_NUMBERS", 2 * per_step * limit)
    for name, seed in (("a-v0", 1), ("b-v0", 1), ("c-v0", 2)):
        fp3o.record(tmp_path / "policy", name, 5, seed, deterministic=False)
    taken = [
        [episode.actions for episode in load(name).iterate_episodes()]
        for name in ("a-v0", "b-v0", "c-v0")
    ]
    assert [len(episodes) for episodes in taken] == [5, 5, 5]
    as_text = [json.dumps(x, default=np.ndarray.tolist) for x in taken]
    assert as_text[0] == as_text[1] != as_text[2]


def test_an_interrupted_recording(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first batch nothing is left, later the batches before it."""
    import minari

    policy = untrained("probe/credit", tmp_path / "policy")
    spec = policy.card.spec
    n, rewards, ended = spec.num_agents, np.zeros(2), np.array([False, True])
    played = trajectories.PlayedEpisode(
        np.zeros((3, n, spec.obs_size)), np.zeros((2, n, 1), int),
        np.ones((2, *spec.actions.mask.shape), bool), np.ones((2, n), bool), np.zeros((2, n)),
        rewards, ended, ~ended,
    )  # fmt: skip
    monkeypatch.setattr("fp3o.runs.recording.play_episodes", lambda *_: iter([[played]] * 2))

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    create = minari.create_dataset_from_buffers
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(minari, "create_dataset_from_buffers", lambda **x: interrupted(create(**x)))
        fp3o.record(policy, "none-v0", 2)
    assert not (root / "none-v0").exists()
    monkeypatch.setattr(minari.MinariDataset, "update_dataset_from_buffer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fp3o.record(policy, "some-v0", 2)
    assert len([*load("some-v0").iterate_episodes()]) == 1


def test_host_environments_and_vectors(root: Path, tmp_path: Path) -> None:
    """Continuous actions have no masks; a time limit truncates."""
    policy = untrained("mamujoco/Reacher-2x1", tmp_path / "policy")
    fp3o.record(policy, "reacher-v1", 2)
    for episode in load("reacher-v1").iterate_episodes():
        assert episode.truncations[-1] and not episode.terminations.any()
        assert "action_mask" not in episode.infos
        wanted, _ = policy.act(episode.observations)  # without a GRU, time is a batch axis
        for name, actions in episode.actions.items():
            assert actions.shape == (1000, 1) and episode.infos["alive"][name].all()
            np.testing.assert_allclose(actions, wanted[name][:-1], atol=1e-5)


def test_wrong_requests(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that leave the folder of datasets, taken names, numbers, agents, a full disk."""
    policy = untrained("probe/credit", tmp_path / "policy")
    for name in (
        "../out-v0",
        "x/y-v0",
        "/tmp/out-v0",
        "a//b-v0",
        "team",
        "team-v",
        "a b-v0",
        "ä-v0",
        "",
    ):
        with pytest.raises(SettingError, match="is not the name of a dataset"):
            fp3o.record(policy, name)
    (root / "taken-v0").mkdir(parents=True)
    with pytest.raises(SettingError, match="taken-v0 exists"):
        fp3o.record(policy, "taken-v0")
    with pytest.raises(SettingError, match="at least 1, got 0"):
        fp3o.record(policy, "new-v0", 0)
    spec = dataclasses.replace(policy.card.spec, agents=("a/b", "c", "d"))
    odd = Policy(dataclasses.replace(policy.card, spec=spec), policy.weights)
    with pytest.raises(SettingError, match="cannot have a key 'a/b'"):
        fp3o.record(odd, "new-v0")
    stranger = dataclasses.replace(policy.card.spec, name="python/trap.game")
    card = dataclasses.replace(policy.card, spec=stranger)
    with pytest.raises(fp3o.PolicyError, match=r"python/trap\.game.*trust"):
        fp3o.record(Policy(card, policy.weights, trusted=False), "new-v0")
    (tmp_path / "file").touch()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "file"))
    with pytest.raises(UserError, match="Set MINARI_DATASETS_PATH"):
        fp3o.record(policy, "new-v0")
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(MissingExtraError, match=r"fp3o\[minari\]"):
        fp3o.record(policy, "new-v0")


def test_episodes_that_do_not_end(root: Path, tmp_path: Path) -> None:
    """They are left out with a warning; if none ends, nothing is written."""
    policy = untrained("probe/credit", tmp_path / "policy")
    false = np.zeros(2, bool)
    never: Any = trajectories.TimeStep._make([false] * len(trajectories.TimeStep._fields))
    with pytest.warns(RuntimeWarning, match="did not end within max_episode_steps"):
        found = [*trajectories._first_episodes([never] * 3, [], 1)]
    assert found == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fp3o.runs.recording.play_episodes", lambda *_: iter([[]]))
        with pytest.raises(UserError, match="no episode of probe/credit ended"):
            fp3o.record(policy, "new-v0")
    assert not (root / "new-v0").exists()
