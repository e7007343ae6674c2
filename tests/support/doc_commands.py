"""Parsing of documented commands, and limits on what documented code does."""

import ast
import importlib
import shlex
from collections.abc import Callable
from typing import Any

import pytest

import fp3o
from fp3o.cli import main as cli
from fp3o.cli import options as cli_options
from fp3o.cli import train


def replace(patch: pytest.MonkeyPatch, target: str, value: Any) -> None:
    """Replace a function where it is defined, and in `fp3o`, which keeps what it has imported."""
    name = target.rpartition(".")[2]
    if name in fp3o.__all__:
        getattr(fp3o, name)  # so that the original is put back
        patch.setattr(fp3o, name, value)
    patch.setattr(target, value)


def fewer(patch: pytest.MonkeyPatch, target: str, index: int, name: str, limit: int) -> None:
    """Limit the argument of a function that has this index or name."""
    home, _, function_name = target.rpartition(".")
    real: Callable[..., Any] = getattr(importlib.import_module(home), function_name)

    def function(*args: Any, **options: Any) -> Any:
        given = list(args)
        if len(given) > index:
            given[index] = min(given[index], limit)
        else:
            options[name] = min(options.get(name, limit), limit)
        return real(*given, **options)

    replace(patch, target, function)


class FewerIterations(ast.NodeTransformer):
    """Two iterations of loops that train."""

    def visit_For(self, node: ast.For) -> ast.For:
        """`for _ in range(60): ... iterate(...)`; the runs of `fp3o.iterate` are short already."""
        if "iterate(" in "".join(map(ast.unparse, node.body)):
            node.iter = ast.copy_location(
                ast.Tuple([ast.Constant(0), ast.Constant(1)], ast.Load()), node.iter
            )
        return ast.fix_missing_locations(node)


class ParsedError(Exception):
    """Raised when a command has been parsed."""


def parse_command(line: str) -> None:
    """Parse a command without running it: its options must exist and have valid values."""

    def parse_train(*args: Any) -> Any:
        options = read_train(*args)
        options.settings.config.learner.row  # noqa: B018
        options.placement.check()
        raise ParsedError

    def parse_only(*args: Any, **options: Any) -> Any:
        parse(*args, **options)
        raise ParsedError

    words, parse = shlex.split(line, comments=True)[1:], cli_options.read_options
    read_train = train.read_train_options
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ParsedError):
        patch.setenv("FP3O_DEBUG", "1")
        if words[0] == "train":
            patch.setattr(train, "read_train_options", parse_train)
        else:
            for module in ("bench", "experiment", "inspect", "policies", "runs"):
                patch.setattr(f"fp3o.cli.{module}.read_options", parse_only)
        cli.main(words)
