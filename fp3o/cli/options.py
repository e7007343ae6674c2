"""TODO."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import tyro

Which = Literal["best", "last"]

Directory = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]

Directories = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="DIR")]

Name = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]


def parse_count(text: str) -> int:
    """`1e6`, `2_000_000`, `3M` or `250k` as a whole number."""
    sizes = {"k": 1e3, "M": 1e6, "G": 1e9}
    number, size = (text[:-1], sizes[text[-1]]) if text[-1:] in sizes else (text, 1)
    value = float(number) * size
    if not value.is_integer():
        raise ValueError(f"{text!r} is no whole number")
    return int(value)


Count = Annotated[
    int,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1, metavar="INT", instance_from_str=lambda words: parse_count(words[0]),
        is_instance=lambda x: isinstance(x, int), str_from_instance=lambda x: [str(x)],
    ),
]  # fmt: skip
"""A whole number that may be written as 1e6 or 3M."""


def ask(options: type, argv: Sequence[str], name: str, command: Callable[..., Any]) -> Any:
    """Read a command's options."""
    return tyro.cli(
        options, prog=f"fp3o {name}", description=command.__doc__, args=list(argv),
        config=(tyro.conf.OmitArgPrefixes,),
    )  # fmt: skip
