"""Reports read run directories as data, without importing JAX or the training code."""

import ast
from pathlib import Path

import fp3o.reports

FORBIDDEN = ("fp3o.runs", "fp3o.policy", "fp3o.learning", "fp3o.training", "fp3o.networks", "jax")


def test_reports_import_nothing_of_training() -> None:
    """Neither at the top of a module nor inside a function."""
    for path in Path(str(fp3o.reports.__file__)).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [x for x in names if x.startswith(FORBIDDEN)], path
