"""Options of commands, read by tyro from dataclasses. Counts may be written as 1e6 or 3M."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

Which = Literal["best", "last"]

DirectoryArgument = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]

DirectoriesArgument = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="DIR")]

NameArgument = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]

Constructors = Mapping[Any, "PrimitiveConstructorSpec[Any]"]
"""Parser and formatter of values, by type."""


def parse_count(text: str) -> int:
    """`1e6`, `2_000_000`, `3M` or `250k` as an integer."""
    sizes = {"k": 1e3, "M": 1e6, "G": 1e9}
    number, size = (text[:-1], sizes[text[-1]]) if text[-1:] in sizes else (text, 1)
    value = float(number) * size
    if not value.is_integer():
        raise ValueError(f"{text!r} is not an integer")
    return int(value)


def constructor(
    metavar: str, read: Callable[[str], Any], show: Callable[[Any], str] = str
) -> "PrimitiveConstructorSpec[Any]":
    """Parser of values from one argument, and formatter of defaults."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda arguments: read(arguments[0]),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [show(value)],
    )


def read_options(
    options: type,
    argv: Sequence[str],
    command: Callable[..., Any],
    default: Any = None,
    constructors: Constructors | None = None,
) -> Any:
    """Parse the options of a command, whose docstring is the description."""
    known = {int: constructor("INT", parse_count), **(constructors or {})}
    registry = ConstructorRegistry()

    @registry.primitive_rule
    def _rule(info: PrimitiveTypeInfo) -> "PrimitiveConstructorSpec[Any] | None":
        matches = (spec for kind, spec in known.items() if kind == info.type)
        return next(matches, None)

    name = command.__name__.removesuffix("_command")
    return tyro.cli(
        options,
        prog=f"fp3o {name}",
        description=inspect.cleandoc(command.__doc__ or ""),
        args=list(argv),
        default=default,
        registry=registry,
        config=(tyro.conf.OmitArgPrefixes,),
    )
