"""Checkpoints: which one is used, what ties it to settings and metrics, and when none is."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from run_files import SETTINGS, arrays, directory, tied

from fp3o.runs.atomic import RunError
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.runs.checkpoint_files import Checkpoint
from fp3o.runs.directory import DamagedRunError


def test_trees_round_trip() -> None:
    """Random keys, numbers of all kinds and host arrays, bit for bit; other shapes are rejected."""
    tree = {
        "key": jax.random.split(jax.random.key(3), 2),
        "x": (jnp.arange(3), jnp.ones((2, 2), bool)),
        "host": np.array([1.0 + 1e-12]),
    }
    back = from_arrays(tree, to_arrays(tree))
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    assert (jax.random.key_data(back["key"]) == jax.random.key_data(tree["key"])).all()
    assert back["host"].dtype == np.float64
    assert back["host"][0] == tree["host"][0]
    changed = to_arrays(tree)
    changed["['x'][0]"] = np.arange(4)
    with pytest.raises(RunError, match="does not fit the settings"):
        from_arrays(tree, changed)


def test_the_last_few_are_kept(tmp_path: Path) -> None:
    """Old checkpoints are removed, the newest is read."""
    run = directory(tmp_path)
    for iteration in range(1, 6):
        run.save(Checkpoint(iteration, 7, arrays(iteration)), keep=2)
    assert [path.stem for path in run.checkpoints()] == ["000000004", "000000005"]
    newest = run.newest()
    assert newest is not None
    assert (newest.iteration, newest.cursor) == (5, 7)
    assert newest.arrays["weight"][0, 0] == 5


@pytest.mark.parametrize("damage", ["torn", "flipped", "empty", "header", "digest"])
def test_damaged_checkpoints_are_skipped(tmp_path: Path, damage: str) -> None:
    """The one before is used, with a warning that names the file."""
    run = directory(tmp_path)
    run.save(Checkpoint(1, 7, arrays(1)), keep=3)
    path = run.save(Checkpoint(2, 7, arrays(2)), keep=3)
    whole = path.read_bytes()
    last = whole[:-1] + bytes([whole[-1] ^ 1])
    path.write_bytes(
        {
            "torn": whole[: len(whole) // 2],
            "flipped": last,
            "empty": b"",
            "header": (2**40).to_bytes(8, "little") + whole[8:],
            "digest": whole.replace(b'"iteration":"2"', b'"iteration":"9"'),
        }[damage]
    )
    assert path.read_bytes() != whole
    with pytest.warns(UserWarning, match=r"000000002.safetensors cannot be used"):
        newest = run.newest()
    assert newest is not None
    assert newest.iteration == 1


def test_no_intact_checkpoint(tmp_path: Path) -> None:
    """A run without any checkpoint has not begun; if all are damaged, that stays an error."""
    run = directory(tmp_path)
    assert run.newest() is None
    path = run.save(Checkpoint(1, 7, arrays(1)), keep=3)
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(RunError, match=r"none of the 1 checkpoints .*--restart"):
            run.newest()
        assert path.exists()
    path.unlink()
    (run.path / "policy").mkdir()
    for _ in range(2):
        with pytest.raises(RunError, match=r"no checkpoint.*trained before .*policy.*--restart"):
            run.newest()


@pytest.mark.parametrize("name", ["seed", "gamma"])
def test_a_checkpoint_belongs_to_its_settings(tmp_path: Path, name: str) -> None:
    """Other settings are noticed, with and without a matching checksum; the length may change."""
    run = directory(tmp_path)
    tied(run, 1)
    run.write_json("config.json", {"format": 2, "settings": SETTINGS | {"steps": 200}})
    assert run.newest() is not None
    run.write_json("config.json", {"format": 2, "settings": SETTINGS | {name: 5}})
    with pytest.raises(RunError, match="written with other settings"):
        run.newest()
    config = run.path / "config.json"
    config.write_text(config.read_text().replace('"steps": 100', '"steps": 101'))
    with pytest.raises(DamagedRunError, match=r"damaged or was edited.*resume --steps"):
        run.read_settings()


def test_a_checkpoint_belongs_to_its_metrics(tmp_path: Path) -> None:
    """Damaged rows: the newest checkpoint from before the damage is used, if there is one."""
    run = directory(tmp_path)
    tied(run, 1)
    run.append("metrics.jsonl", [{"step": 2}])
    tied(run, 2)
    rows = run.metrics.read_bytes()
    run.metrics.write_bytes(rows.replace(b"2", b"3"))
    with pytest.warns(UserWarning, match="metrics.jsonl is not the one"):
        newest = run.newest()
    assert newest is not None
    assert newest.iteration == 1
    run.metrics.write_bytes(rows.replace(b"1", b"4"))
    with pytest.raises(RunError, match=r"metrics.jsonl is not the one"):
        run.newest()
    run.metrics.write_bytes(rows[:3])
    with pytest.raises(RunError, match="shorter than"):
        run.newest()


def test_metrics_are_rewound(tmp_path: Path) -> None:
    """Rows after the checkpoint are removed."""
    run = directory(tmp_path)
    cursor = run.metrics.stat().st_size
    run.append("metrics.jsonl", [{"step": 3}])
    assert [json.loads(line)["step"] for line in run.rewind(cursor).splitlines()] == [1]
    assert run.metrics.stat().st_size == cursor
