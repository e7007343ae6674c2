"""The policy folder: its content, how it is replaced, and which one of a run is loaded."""

import math
import os
import shutil
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from small_policies import make_actor

from fp3o.learning.returns import ValueNorm
from fp3o.policy import Policy, PolicyError, replace
from fp3o.policy.card import CARD, WEIGHTS
from fp3o.policy.export import read_actor, write_policy


def test_content_of_a_folder(tmp_path: Path) -> None:
    """The card round-trips: task, value normaliser and provenance, as far as JSON allows."""
    setup, rows = make_actor("partial", 0, "box")
    norm = ValueNorm(jnp.asarray([2.0]), jnp.asarray([8.0]), jnp.asarray([1.0]))
    provenance = {
        "seed": np.int64(3),
        "evaluation": {"return": jnp.float32(1.5), "worst": math.nan},
    }
    written = write_policy(tmp_path / "a", setup, rows, provenance, norm)
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
    """Weights can only be loaded into the same network."""
    with pytest.raises(PolicyError, match="the policy has gru_size 4, the setup has 0"):
        read_actor(Policy.load(folder), make_actor("partial", 0, "discrete")[0])


def test_saving_replaces_as_a_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second save replaces the first, unless it fails; other folders are never replaced."""
    setup, rows = make_actor("partial", 4, "discrete")
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
        patch.setattr(replace, "exchange_names", lambda one, other: False)
        patch.setattr(Path, "rename", fails)
        with pytest.raises(OSError, match="the disk is gone"):
            write_policy(folder, setup, rows, {"step": 8})
    assert Policy.load(folder).card.provenance["step"] == 6
    assert os.listdir(folder.parent) == ["best"]
    with pytest.raises(PolicyError, match="not a policy folder"):
        Policy.load(folder).save(folder.parent)
    assert Policy.load(folder)


def test_mixed_files_are_rejected(folder: Path, tmp_path: Path) -> None:
    """The weights of one policy do not match the card of another."""
    setup, rows = make_actor("partial", 4, "discrete")
    write_policy(tmp_path / "other", setup, tuple(2.0 * row for row in rows), {})
    shutil.copy(tmp_path / "other" / WEIGHTS, folder / WEIGHTS)
    with pytest.raises(PolicyError, match="checksums differ"):
        Policy.load(folder)


def test_a_run_directory(tmp_path: Path) -> None:
    """The best seed, a given one, best or last; what is not there is listed."""
    setup, rows = make_actor("full", 0, "discrete")
    for seed, score in {0: None, 3: -1.0, 12: -5.0}.items():
        for which in ("best", "last") if seed else ("last",):
            provenance = {"name": f"{seed} {which}", "evaluation": {"return": score}}
            write_policy(tmp_path / f"run/policy/seed-{seed}/{which}", setup, rows, provenance)
    name = lambda *a, **k: Policy.load(*a, **k).card.provenance["name"]  # noqa: E731
    run = tmp_path / "run"
    assert name(run) == "3 best" and name(str(run), policy_seed=12) == "12 best"
    assert name(run, which="last") == "3 last" and name(run / "policy/seed-0/last") == "0 last"
    shutil.rmtree(run / "policy/seed-3")
    shutil.rmtree(run / "policy/seed-12/last")
    assert name(run, "last") == "0 last"
    for path, choice, message in [
        (run, {"policy_seed": 0}, "no seed-0/best: did you mean '.*Known: seed-0/last, seed-12/b"),
        (run, {"which": "lst"}, "did you mean 'last'"),
        (tmp_path / "rum", {}, "does not exist: did you mean 'run'"),
        (tmp_path / "x" / "y", {}, "does not exist"),
        (tmp_path, {}, "holds neither policy.json nor"),
        (run / "policy/seed-0/last" / CARD, {}, "is a file: give the policy folder"),
    ]:
        with pytest.raises(PolicyError, match=message):
            Policy.load(path, **choice)
