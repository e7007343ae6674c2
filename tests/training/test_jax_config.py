"""Importing the package changes no setting of JAX."""

import subprocess
import sys

CODE = """
import importlib, pkgutil
import jax
before = dict(jax.config.values)
import fp3o
for module in pkgutil.walk_packages(fp3o.__path__, "fp3o."):
    if module.name != "fp3o.__main__":
        try:
            importlib.import_module(module.name)
        except ImportError:
            pass  # an optional package is missing
after = dict(jax.config.values)
changed = {name for name in before if before[name] != after[name]}
assert not changed, changed
"""


def test_imports_do_not_configure_jax() -> None:
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
