"""The policy folder: acts as the engine does, in NumPy alone, and refuses whatever is damaged."""

import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from fp3o.errors import NonFiniteError
from fp3o.learning.config import Config
from fp3o.learning.returns import ValueNorm
from fp3o.learning.setup import Setup
from fp3o.networks.actor import STD_PARAM_INIT
from fp3o.networks.distributions import MASKED_LOGIT, Categorical
from fp3o.networks.network import ACTIVATIONS
from fp3o.policy import Choices, Normal, Policy, PolicyError, network, team
from fp3o.policy.card import CARD, WEIGHTS, weights_digest
from fp3o.policy.export import read_actor, write_policy
from fp3o.policy.read_card import ACTIVATION_NAMES, STD_PARAM_NAMES
from fp3o.spec import Box, Discrete, EnvSpec
from fp3o.training.rollout import decide
from fp3o.types import TimeStep

SPACES = {"discrete": Discrete(((3, 2), (2, 4), (4, 1), (3, 2))), "box": Box((2, 1, 3, 2))}
OWN = (5, 3, 4, 2)
"""Lengths of the agents' observations."""
BATCH = 6


@cache
def made(sharing: str, gru_size: int, space: str) -> tuple[Setup, Any]:
    """A setup and rows in which no number is at its initial value."""
    layers = ((0, 1, 2, 3), (0, 0, 1, 1), *[(0, 1, 0, 2)] * bool(gru_size), (0, 1, 1, 0))
    config = Config(
        sharing=layers if sharing == "custom" else sharing, gru_size=gru_size, hidden=(6, 7),
        sequence_length=8, activation="relu" if space == "discrete" else "tanh",
        std_param="exp" if gru_size else "sigmoid", agent_id=sharing != "none",
        layer_norm=sharing != "none",
    )  # fmt: skip
    setup = Setup(EnvSpec("test/team", SPACES[space], 5, 9, (0, 0, 1, 1), truncates=True), config)
    layout, random = setup.actor_layout, np.random.default_rng(7)
    widths = {
        groups: factors.size for groups, factors in zip(layout.maps, layout.lr_factors, strict=True)
    }
    sizes = [(max(groups) + 1, width) for groups, width in widths.items()]
    return setup, tuple(jnp.asarray(random.normal(0.0, 0.5, size), jnp.float32) for size in sizes)


def built(sharing: str, gru_size: int, space: str, folder: Path) -> Policy:
    """The policy of `made`, as it comes back from its folder."""
    write_policy(folder, *made(sharing, gru_size, space), {"step": 5})
    return Policy.load(folder)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("original") / "best"
    built("partial", 4, "discrete", place)
    return place


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A small recurrent policy's folder."""
    return Path(shutil.copytree(original, tmp_path / "best"))


def seen(random: np.random.Generator, num_outputs: int) -> dict[str, Any]:
    """What a team sees at one step: padded observations, legal choices, fresh episodes."""
    obs = random.normal(1.0, 2.0, size=(BATCH, 4, 5)) * (np.arange(5) < np.array(OWN)[:, None])
    action_mask = random.random((BATCH, 4, num_outputs)) < 0.7
    action_mask[..., 0] = action_mask[..., num_outputs // 2] = True
    return {
        "obs": obs, "action_mask": action_mask, "episode_start": random.random(BATCH) < 0.3,
    }  # fmt: skip


def engine(setup: Setup, rows: Any, step: dict[str, Any], hidden_state: Any) -> Any:
    """The engine's decision and the distribution behind it."""
    nothing, flag = jnp.zeros((BATCH, 4)), jnp.zeros(BATCH, bool)
    obs, state = jnp.asarray(step["obs"], float), jnp.zeros((BATCH, 4, 9))
    timestep = TimeStep(
        obs, state, step["action_mask"], jnp.ones((BATCH, 4), bool), nothing, flag, flag,
        step["episode_start"],
        obs, state, jnp.zeros((BATCH, 0)),
    )  # fmt: skip
    choice = decide(setup, rows, timestep, hidden_state, None)
    swap = lambda x: jnp.swapaxes(x, 0, 1)  # noqa: E731
    action_mask = jnp.asarray(step["action_mask"]) & setup.spec.actions.mask
    start = jnp.broadcast_to(jnp.asarray(step["episode_start"])[:, None], (BATCH, 4))
    x = setup.inputs(obs)
    shown, _ = setup.actor(rows)(swap(x), swap(action_mask), swap(hidden_state), swap(start))
    if isinstance(shown, Categorical):
        return choice, (swap(jnp.exp(shown.log_p)),)
    std = jnp.broadcast_to(shown.std, shown.mean.shape)
    return choice, tuple(swap(jnp.where(shown.action_mask, x, 0.0)) for x in (shown.mean, std))


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("gru_size", [0, 4])
@pytest.mark.parametrize("sharing", ["full", "partial", "none", "custom"])
def test_acts_like_the_engine(
    sharing: str, gru_size: int, space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same actions, distributions and memories over steps with masks and fresh episodes."""
    setup, rows = made(sharing, gru_size, space)
    loaded = built(sharing, gru_size, space, tmp_path / "policy")
    for own, back in zip(rows, read_actor(loaded, setup), strict=True):
        assert back.dtype == jnp.float32 and (np.asarray(own) == np.asarray(back)).all()
    monkeypatch.setattr(network, "SMALL", 0)  # the way of large layers
    large = Policy(loaded.card, loaded.weights)
    reference = jax.jit(partial(engine, setup))
    random = np.random.default_rng(3)
    hidden_state = past = loaded.initial_hidden_state(BATCH)
    for _ in range(4):
        step = seen(random, setup.spec.actions.mask.shape[1])
        choice, wanted = reference(rows, step, jnp.asarray(past))
        given, after = loaded.distribution(hidden_state=hidden_state, **step)
        unmasked, _ = loaded.distribution(step["obs"])
        assert [part.shape for part in unmasked] == [part.shape for part in given]
        actions, hidden_state = loaded.act(hidden_state=hidden_state, **step)
        assert isinstance(given, Choices if space == "discrete" else Normal)
        for one, other in zip(given, wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
        np.testing.assert_allclose(actions, choice.action, atol=1e-5)
        np.testing.assert_allclose(hidden_state, choice.hidden_state, atol=1e-5)
        assert (hidden_state == after).all()
        np.testing.assert_allclose(large.act(hidden_state=past, **step)[0], actions, atol=1e-5)
        past = hidden_state
    assert not gru_size or np.abs(hidden_state).max() > 0.1


@pytest.mark.parametrize(("sharing", "space"), [("custom", "discrete"), ("partial", "box")])
def test_one_agent_alone(sharing: str, space: str, tmp_path: Path) -> None:
    """Agents apart, observations without padding and every batch shape give the same actions."""
    loaded = built(sharing, 4, space, tmp_path / "policy")
    actions_space = loaded.card.spec.actions
    step = seen(np.random.default_rng(4), actions_space.mask.shape[1])
    obs, action_mask = step["obs"], step["action_mask"]
    _, hidden_state = loaded.act(obs)
    wanted, after = loaded.act(obs, hidden_state, action_mask, episode_start=step["episode_start"])
    own_obs = [obs[:, i, :size] for i, size in enumerate(OWN)]
    own_legal = [action_mask[:, i][:, actions_space.mask[i]] for i in range(4)]
    for form in (list, tuple, lambda x: dict(enumerate(x))):
        apart, _ = loaded.act(
            form(own_obs), hidden_state, form(own_legal), episode_start=step["episode_start"]
        )
        np.testing.assert_allclose(apart, wanted, atol=1e-6)
    cut = lambda x: x.reshape(2, 3, *x.shape[1:])  # noqa: E731
    deep, deep_after = loaded.act(
        *map(cut, (obs, hidden_state, action_mask)), episode_start=cut(step["episode_start"])
    )
    np.testing.assert_allclose(deep, cut(wanted), atol=1e-6)
    np.testing.assert_allclose(deep_after, cut(after), atol=1e-6)
    for i in range(4):
        agent = loaded.agent(i)
        alone, own_after = agent.act(
            own_obs[i], hidden_state[:, i], own_legal[i], episode_start=step["episode_start"]
        )
        own = slice(actions_space.sizes[i] if space == "box" else None)
        np.testing.assert_allclose(alone, wanted[:, i, own], atol=1e-6)
        np.testing.assert_allclose(own_after, after[:, i], atol=1e-6)
        assert agent.act(own_obs[i][0])[1].shape == agent.initial_hidden_state().shape == (4,)
        # Only what the agent uses: one group of every layer.
        assert all(len(layer.weight) == 1 for _, layer in agent._team._network._hidden)


def test_the_words_are_the_engines() -> None:
    """The NumPy side cannot import the engine's tables, so they are compared here."""
    assert {*ACTIVATIONS} == ACTIVATION_NAMES and {*STD_PARAM_INIT} == STD_PARAM_NAMES
    assert team._MASKED_LOGIT == MASKED_LOGIT


def test_draws_follow_the_probabilities(tmp_path: Path) -> None:
    """Frequencies of discrete choices, moments of normal ones; nothing illegal is drawn."""
    many, random = 20_000, np.random.default_rng(0)
    for space in SPACES:
        loaded = built("partial", 0, space, tmp_path / space)
        step = seen(random, loaded.card.num_outputs)
        obs, action_mask = (
            np.broadcast_to(step[x][0], (many, *step[x][0].shape)) for x in ("obs", "action_mask")
        )
        given, _ = loaded.distribution(obs[0], action_mask=action_mask[0])
        actions, _ = loaded.act(obs, action_mask=action_mask, deterministic=False, random=random)
        if isinstance(given, Normal):
            np.testing.assert_allclose(actions.mean(0), given.mean, atol=5 * 0.5 / many**0.5)
            np.testing.assert_allclose(actions.std(0), given.std, atol=0.01)
            continue
        for d in range(2):
            p = given.probabilities[:, 4 * d : 4 * d + 4]
            seen_p = (actions[:, :, d, None] == np.arange(4)).mean(0)
            assert (np.abs(seen_p - p) <= 5 * np.sqrt(p * (1 - p) / many)).all()
            np.testing.assert_allclose(p.sum(-1), 1.0, atol=1e-6)
    again = [loaded.act(obs[0], None, None, False, np.random.default_rng(1))[0] for _ in range(2)]
    assert (again[0] == again[1]).all()
    fresh = [loaded.act(obs[0], deterministic=False)[0] for _ in range(2)]
    assert (fresh[0] != fresh[1]).any()


def test_loads_and_acts_without_jax(folder: Path) -> None:
    """A program that plays a policy needs neither JAX nor anything built on it."""
    code = """if True:
        import sys
        for name in ("jax", "jaxlib", "equinox", "jaxtyping", "optax"):
            sys.modules[name] = None  # importing it fails
        import numpy as np
        from fp3o.policy import Policy
        policy = Policy.load(sys.argv[1])
        actions, memory = policy.act(np.ones((2, 4, 5)))
        actions, memory = policy.act(np.ones((2, 4, 5)), memory, deterministic=False)
        print(actions.shape, memory.shape, policy.agent(3).act([1.0, 2.0])[0].shape)
    """
    command = [sys.executable, "-W", "error", "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "(2, 4, 2) (2, 4, 4) (2,)\n", done.stderr


def test_what_a_folder_says(tmp_path: Path) -> None:
    """The card comes back whole: task, value normaliser and provenance, as far as JSON goes."""
    setup, rows = made("partial", 0, "box")
    norm = ValueNorm(jnp.asarray([2.0]), jnp.asarray([8.0]), jnp.asarray([1.0]))
    told = {"seed": np.int64(3), "evaluation": {"return": jnp.float32(1.5), "worst": math.nan}}
    written = write_policy(tmp_path / "a", setup, rows, told, norm)
    card = Policy.load(tmp_path / "a").card
    assert card.spec == setup.spec and card.sharing == setup.actor_sharing
    assert card.value == ((2.0,), (2.0,))
    assert card.provenance == {"seed": 3, "evaluation": {"return": 1.5, "worst": None}}
    assert written.weights.keys() == safetensors.numpy.load_file(tmp_path / "a" / WEIGHTS).keys()
    assert {"network.hidden.0.weight", "network.norms.2.scale", "log_std.value"} < {
        *written.weights
    }
    with pytest.raises(PolicyError, match=r"cannot save .*object"):
        write_policy(tmp_path / "b", setup, rows, {"when": object()})
    assert not (tmp_path / "b").exists()


def test_another_network_cannot_read_it(folder: Path) -> None:
    """Weights go back only into the network they came from."""
    with pytest.raises(PolicyError, match="the policy has gru_size 4, the setup has 0"):
        read_actor(Policy.load(folder), made("partial", 0, "discrete")[0])


def test_saving_replaces_as_a_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second save wins; one that fails leaves the first; other folders are never replaced."""
    setup, rows = made("partial", 4, "discrete")
    write_policy(folder, setup, rows, {"step": 6})
    assert Policy.load(folder).card.provenance["step"] == 6
    assert os.listdir(folder.parent) == ["best"] and {*os.listdir(folder)} == {CARD, WEIGHTS}

    bad = (rows[0].at[0, 0].set(jnp.nan), *rows[1:])
    with pytest.raises(PolicyError, match="not finite"):
        write_policy(folder, setup, bad, {"step": 7})
    rename, calls = Path.rename, iter(range(9))

    def fails(self: Path, target: Path) -> Path:
        if next(calls) == 1:  # the old folder is out of the way, the new one not yet in its place
            raise OSError("the disk is gone")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fails)
        with pytest.raises(OSError, match="the disk is gone"):
            write_policy(folder, setup, rows, {"step": 8})
    assert Policy.load(folder).card.provenance["step"] == 6
    assert os.listdir(folder.parent) == ["best"]
    with pytest.raises(PolicyError, match="not a policy folder"):
        Policy.load(folder).save(folder.parent)
    assert Policy.load(folder)


def test_a_mixture_is_refused(folder: Path, tmp_path: Path) -> None:
    """The weights of one policy do not go with the card of another."""
    setup, rows = made("partial", 4, "discrete")
    write_policy(tmp_path / "other", setup, tuple(2.0 * row for row in rows), {})
    shutil.copy(tmp_path / "other" / WEIGHTS, folder / WEIGHTS)
    with pytest.raises(PolicyError, match="checksums differ"):
        Policy.load(folder)


def test_a_run_directory(tmp_path: Path) -> None:
    """The best seed, a given one, best or last; what is not there is listed."""
    setup, rows = made("full", 0, "discrete")
    for seed, score in {0: None, 3: -1.0, 12: -5.0}.items():
        for which in ("best", "last") if seed else ("last",):
            told = {"name": f"{seed} {which}", "evaluation": {"return": score}}
            write_policy(tmp_path / f"run/policy/seed-{seed}/{which}", setup, rows, told)
    name = lambda *a, **k: Policy.load(*a, **k).card.provenance["name"]  # noqa: E731
    run = tmp_path / "run"
    assert name(run) == "3 best" and name(str(run), seed=12) == "12 best"
    assert name(run, which="last") == "3 last" and name(run / "policy/seed-0/last") == "0 last"
    shutil.rmtree(run / "policy/seed-3")
    shutil.rmtree(run / "policy/seed-12/last")
    assert name(run, "last") == "0 last"
    for path, choice, message in [
        (run, {"seed": 0}, "no seed-0/best: did you mean '.*Known: seed-0/last, seed-12/b"),
        (run, {"which": "lst"}, "did you mean 'last'"),
        (tmp_path / "rum", {}, "does not exist: did you mean 'run'"),
        (tmp_path / "x" / "y", {}, "does not exist"),
        (tmp_path, {}, "holds neither policy.json nor"),
        (run / "policy/seed-0/last" / CARD, {}, "is a file: give the policy folder"),
    ]:
        with pytest.raises(PolicyError, match=message):
            Policy.load(path, **choice)


def test_wrong_input(folder: Path) -> None:
    """A shape that does not fit is named with the one that does; so are numbers gone wild."""
    loaded = Policy.load(folder)
    obs = np.ones((2, 4, 5))
    for arguments, message in [
        ({"obs": np.ones((2, 5, 4))}, r"\(2, 5, 4\): give \(\*batch, 4, 5\)"),
        ({"obs": [np.ones(5)] * 3}, "each of the 4 agents, got 3"),
        ({"obs": {"a": 1, "b": 2, "c": 3, "d": 4}}, "each of the 4 agents"),
        ({"obs": [np.ones(6)] * 4}, "at most 5 features"),
        ({"obs": obs, "hidden_state": np.zeros((4, 4))}, r"hidden_state has shape \(4, 4\)"),
        ({"obs": obs, "action_mask": np.ones((2, 4, 3))}, r"expected \(2, 4, 8\)"),
        ({"obs": obs, "episode_start": True}, "episode_start has shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            loaded.act(**arguments)
    with pytest.raises(ValueError, match="no agent 4: 0 to 3"):
        loaded.agent(4)
    for number in (math.nan, math.inf):
        obs[1, 2, 3] = number
        with pytest.raises(NonFiniteError, match="observation"):
            loaded.act(obs)


# Hostile and damaged folders ---------------------------------------------------------------------


def card_with(*keys: str | int, value: Any) -> Callable[[Path], None]:
    """Set one entry of the JSON."""

    def change(folder: Path) -> None:
        document = entry = json.loads((folder / CARD).read_text())
        for key in keys[:-1]:
            entry = entry[key]
        entry[keys[-1]] = value
        (folder / CARD).write_text(json.dumps(document))

    return change


def card_text(text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / CARD).write_text(text) and None


def sealed(folder: Path, data: bytes) -> None:
    """Other weights under a card that vouches for them."""
    (folder / WEIGHTS).write_bytes(data)
    for key, value in weights_digest(data).items():
        card_with("weights", key, value=value)(folder)


def arrays_with(change: Callable[[dict[str, np.ndarray]], Any]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        arrays = {k: v.copy() for k, v in safetensors.numpy.load_file(folder / WEIGHTS).items()}
        change(arrays)
        sealed(folder, safetensors.numpy.save(arrays))

    return write


def header_with(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """A changed header before the same data."""

    def write(folder: Path) -> None:
        data = (folder / WEIGHTS).read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + length])
        text = change(header) or json.dumps(header)
        sealed(folder, struct.pack("<Q", len(text)) + text.encode() + data[8 + length :])

    return write


def linked(name: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).rename(folder.parent / name)
        (folder / name).symlink_to(folder.parent / name)

    return write


def piped(name: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return write


def longer(name: str, size: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, size)


FIRST, SECOND = "network.hidden.0.bias", "network.hidden.1.bias"


def overlap(header: dict[str, Any]) -> None:
    begin = header[FIRST]["data_offsets"][0]
    header[SECOND]["data_offsets"] = [begin, begin + 4 * math.prod(header[SECOND]["shape"])]


def with_nan(arrays: dict[str, np.ndarray]) -> None:
    arrays[FIRST][0, 0] = np.nan


HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no card": (lambda f: (f / CARD).unlink(), "policy.json: is missing"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), "weights.safetensors: is missing"),
    "empty card": (card_text(""), "policy.json: Expecting value"),
    "list for a card": (card_text("[]"), "policy must be an object, got a list of 0"),
    "binary card": (lambda f: (f / CARD).write_bytes(b"\xff\xfe\x80"), "policy.json: "),
    "deep card": (card_text("[" * 100_000), "policy.json: .*recursion"),
    "long number": (card_text('{"format": ' + "9" * 5000 + "}"), "policy.json: .*digits"),
    "same key twice": (card_text('{"format": 1, "format": 1}'), "same key twice"),
    "NaN in the card": (card_with("provenance", "x", value=math.nan), "holds NaN"),
    "large card": (longer(CARD, 2**33), "8589934592 bytes, at most 4194304"),
    "format": (card_with("format", value=3), "has the format 3, this version of fp3o reads"),
    "format true": (card_with("format", value=True), "has the format True"),
    "unknown key": (card_with("tsk", value=1), "unknown key 'tsk': did you mean 'task'"),
    "missing key": (card_with("network", value={"hidden": [3]}), "policy.network lacks gru_size"),
    "name": (card_with("task", "name", value=3), "task.name must be a JSON str, got 3"),
    "wide layer": (card_with("network", "hidden", value=[10**9, 4]), r"hidden\[0\] must be an int"),
    "wide layers": (card_with("network", "hidden", value=[2**20] * 2), "parameters, at most 6710"),
    "wide team": (
        lambda f: [
            card_with("network", "hidden", value=[1, 1])(f),
            card_with("task", "obs_size", value=2**24)(f),
        ],
        "parameters, at most 6710",
    ),
    "negative": (card_with("network", "hidden", value=[-1, 4]), r"hidden\[0\].*got -1"),
    "no layers": (card_with("network", "hidden", value=[]), "list of 1 to 64 entries, got"),
    "many layers": (card_with("network", "hidden", value=[1] * 10**5), "list of 1 to 64 entries"),
    "float size": (card_with("network", "gru_size", value=4.0), "gru_size must be an integer"),
    "bool size": (card_with("task", "obs_size", value=True), "obs_size must be an integer"),
    "many agents": (card_with("task", "agent_types", value=[0] * 10**5), "agent_types must be a"),
    "agents differ": (card_with("task", "agent_types", value=[0]), "for 4 agents, agent_types"),
    "activation": (card_with("network", "activation", value="os.system"), "'relu' or 'tanh'"),
    "actions": (card_with("task", "actions", "kind", value="Box"), "'box' or 'discrete', got "),
    "uneven": (card_with("task", "actions", "sizes", 0, value=[3]), "same number of sub-actions"),
    "choices": (card_with("task", "actions", "sizes", 0, value=[3, 2**23]), "1048576 outputs"),
    "sharing depth": (card_with("sharing", value=[[0] * 4]), "has 1 layers, the network has 4"),
    "sharing agents": (card_with("sharing", 0, value=[0] * 3), "is for 3 agents, the task has 4"),
    "sharing order": (card_with("sharing", 0, value=[1, 0, 0, 0]), "in order of appearance"),
    "epsilon": (card_with("normalisers", "input", "epsilon", value=-1), "epsilon must be a number"),
    "value": (card_with("normalisers", "value", value=[]), "value must be an object"),
    "value sizes": (
        card_with("normalisers", "value", value={"mean": [0], "std": [1, 2]}), "as many means",
    ),
    "provenance": (card_with("provenance", value=[1]), "provenance must be a JSON dict"),
    "parent path": (card_with("weights", "file", value="../x"), "file must be 'weights.safe"),
    "absolute path": (card_with("weights", "file", value="/etc/passwd"), "weights.file must be"),
    "long words": (card_with("weights", "file", value="x" * 10**6), "got 'x{40}'$"),
    "size": (card_with("weights", "bytes", value=7), "bytes, policy.json says 7"),
    "checksum": (card_with("weights", "sha256", value="0" * 64), "checksums differ"),
    "link to the card": (linked(CARD), "policy.json: is a symbolic link"),
    "link to weights": (linked(WEIGHTS), "weights.safetensors: is a symbolic link"),
    "pipe": (piped(WEIGHTS), "is not a regular file"),
    "pipe for a card": (piped(CARD), "policy.json: is not a regular file"),
    "large weights": (longer(WEIGHTS, 2**33), "8589934592 bytes, at most"),
    "cut weights": (longer(WEIGHTS, 1000), "has 1000 bytes"),
    "cut and sealed": (lambda f: sealed(f, (f / WEIGHTS).read_bytes()[:-4]), "a header of"),
    "tiny": (lambda f: sealed(f, b"ab"), "in a file of 2;"),
    "long header": (
        lambda f: sealed(f, struct.pack("<Q", 2**62) + (f / WEIGHTS).read_bytes()[8:]),
        "a header of 4611686018427387904 bytes",
    ),
    "header is no JSON": (header_with(lambda h: "}" * 9), "weights.safetensors: Expecting"),
    "header is a list": (header_with(lambda h: "[1]"), "must be a JSON dict, got a list of 1"),
    "entry": (header_with(lambda h: h.update({FIRST: 3})), "0.bias must be a JSON dict, got 3"),
    "dtype": (header_with(lambda h: h[FIRST].update(dtype="I32")), "must be 'F32' .*got 'I32'"),
    "shape": (header_with(lambda h: h[FIRST].update(shape=[6, 1])), r"got 'F32' '\[6, 1\]'"),
    "offsets": (header_with(lambda h: h[FIRST].update(data_offsets=[0, 2**40])), "weights.safet"),
    "overlap": (header_with(overlap), "weights.safetensors: .*offset"),
    "missing array": (arrays_with(lambda a: a.pop(FIRST)), "a header of"),
    "other name": (arrays_with(lambda a: a.update(x=a.pop(FIRST))), "lacks the array 'network.hid"),
    "extra array": (
        header_with(lambda h: h.update(x={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})),
        "has the array 'x' the network does not have",
    ),
    "NaN": (arrays_with(with_nan), "0.bias holds values that are not finite"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_folders(case: str, folder: Path) -> None:
    """One exception that names the file and the fault, before anything large is read."""
    change, message = HOSTILE[case]
    Policy.load(folder)
    change(folder)
    tracemalloc.start()
    try:
        with pytest.raises(PolicyError, match=message) as caught:
            Policy.load(folder)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(folder) in str(caught.value) and len(str(caught.value)) < 400 + len(str(folder))
    assert peak < 2**26
