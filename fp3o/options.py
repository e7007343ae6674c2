"""Options of a task as text, `reward=sum,env.num_agents=3`, and back."""

from collections.abc import Iterable, Mapping

from fp3o.errors import nearest

Value = bool | int | float | str | None

WORDS: Mapping[str, Value] = {"true": True, "false": False, "none": None}
"""Values that have a word."""

INSIDE = "env."
"""What begins the names of the options that are the environment's own."""


def parse(text: str) -> dict[str, Value]:
    """Options by name; a value is true, false, none, a whole number, a number, or else a text."""
    options: dict[str, Value] = {}
    for part in text.split(",") if text else ():
        name, equals, value = (word.strip() for word in part.partition("="))
        if not (name and equals):
            raise ValueError(f"an option is written name=value, got {part!r} in {text!r}")
        if name in options:
            raise ValueError(f"option {name!r} is given twice in {text!r}")
        options[name] = _read(value)
    return options


def write(options: Mapping[str, Value]) -> str:
    """The text that `parse` reads as these options."""
    return ",".join(f"{name}={_say(name, value)}" for name, value in options.items())


def of_variant(
    variant: str, known: Iterable[str]
) -> tuple[dict[str, Value], tuple[tuple[str, Value], ...]]:
    """The options of a variant `default:...`: ours, and the environment's in alphabetical order."""
    rules, _, text = variant.partition(":")
    if rules != "default":
        raise ValueError(f"unknown variant {rules!r}: {nearest(rules, ['default'])}")
    ours, theirs, known = {}, {}, tuple(known)
    for name, value in parse(text).items():
        if name.startswith(INSIDE):
            theirs[name.removeprefix(INSIDE)] = value
        elif name in known:
            ours[name] = value
        else:
            allowed = {*known, f"{INSIDE}{name}"}
            raise ValueError(f"unknown option {name!r}: {nearest(name, allowed)}")
    return ours, tuple(sorted(theirs.items()))


def to_variant(ours: Mapping[str, Value], theirs: Iterable[tuple[str, Value]]) -> str:
    """The variant with these options, in the one form that `spec.name` has."""
    inside = {f"{INSIDE}{name}": value for name, value in sorted(theirs)}
    text = write({**ours, **inside})
    return f"default:{text}" if text else "default"


def _read(text: str) -> Value:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _say(name: str, value: Value) -> str:
    words = {id(known): word for word, known in WORDS.items()}
    text = words.get(id(value)) or str(value)
    if set(text) & set(",=") or text != text.strip() or _read(text) != value:
        # Also a text that looks like a number would come back as one.
        raise ValueError(f"option {name} cannot be written: {value!r} would not be read back")
    return text
