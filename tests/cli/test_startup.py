"""What starting the program imports: each of these packages takes a tenth of a second or more."""

import subprocess
import sys

import pytest

HEAVY = {"jax", "equinox", "optax", "mujoco", "scipy", "matplotlib", "PIL", "gymnasium"}

LIST = "from fp3o.cli.main import main; main(['list'])"
"""Names of tasks need their environments: JAX and MuJoCo, but nothing that learns or draws."""


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import fp3o", set()),
        ("import fp3o.cli.main", set()),
        ("from fp3o.cli.main import main; main(['--help'])", set()),
        (LIST, {"jax", "equinox", "mujoco"}),
    ],
)
def test_imports_at_the_start(code: str, allowed: set[str]) -> None:
    program = f"{code}\nimport sys; print('imported', *({HEAVY} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    imported = {*done.stdout.rsplit("imported", 1)[1].split()}
    assert imported <= allowed
