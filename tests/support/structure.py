"""Measurements of the package's structure: `python tests/support/structure.py` prints them.

A unit is a top-level module or package of `fp3o`; each family of environments counts as one. What
matters is read from the source text (imports, definitions, lengths), so nothing is imported.
"""

import ast
import statistics
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[2] / "fp3o"

ORDER = (
    ("errors", "files", "spec", "types"),
    ("imports", "options"),
    ("envs",),
    ("envs.toys", "envs.mpe", "envs.mamujoco", "envs.smac"),
    ("envs.starcraft2",),
    ("sharing", "algorithms"),
    ("networks",),
    ("learning",),
    ("training", "reports"),
    ("policy",),
    ("runs",),
    ("experiments", "bench"),
    ("cli",),
    ("__init__", "__main__"),
)
"""The packages from the lowest to the highest: a module imports its own unit and lower ones."""

FAMILIES = {"toys", "mpe", "mamujoco", "smac", "starcraft2"}
WINDOW = 6
"""Lines that make a repetition."""


class Function(NamedTuple):
    """A function or method: where it is, how long, and how many parameters it takes."""

    place: str
    lines: int
    parameters: int


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its name without `fp3o.`."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in paths}


@cache
def tree(name: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(modules()[name].read_text())


def unit(module: str) -> str:
    """The unit of a module, from its name without `fp3o.`."""
    parts = module.split(".")
    if parts[0] == "envs" and len(parts) > 1 and parts[1] in FAMILIES:
        return f"envs.{parts[1]}"
    return parts[0]


def imports(name: str) -> Iterator[str]:
    """Modules of the package that a module imports at run time, also inside functions."""
    for node in _runtime_nodes(tree(name)):
        yield from _imported(node)


def _imported(node: ast.AST) -> Iterator[str]:
    """Modules of the package that one statement imports."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fp3o":
        inside = (node.module or "").removeprefix("fp3o").lstrip(".")
        for alias in node.names:
            whole = f"{inside}.{alias.name}".lstrip(".")
            yield _module(whole) or _module(inside) or "__init__"
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == "fp3o":
                yield _module(alias.name.removeprefix("fp3o").lstrip(".")) or "__init__"


def _module(name: str) -> str | None:
    return next((x for x in (name, f"{name}.__init__") if x in modules()), None)


def _runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _runtime_nodes(child)


def unit_imports() -> dict[str, set[str]]:
    """Unit -> the other units it imports. The entry points `__init__`, `__main__` are none."""
    inside = [name for name in modules() if name not in ("__init__", "__main__")]
    found: dict[str, set[str]] = {unit(name): set() for name in inside}
    for name in inside:
        found[unit(name)] |= {unit(other) for other in imports(name)} - {unit(name)}
    return found


def upward_imports() -> list[str]:
    """Imports against `ORDER`, as `module -> module`."""
    level = {name: place for place, names in enumerate(ORDER) for name in names}
    found = {
        f"{name} -> {other}"
        for name in modules()
        for other in imports(name)
        if unit(other) != unit(name) and level[unit(other)] >= level[unit(name)]
    }
    return sorted(found)


def layers() -> int:
    """Length of the longest chain of imports between units; raises where there is a cycle."""
    graph, seen = unit_imports(), {}

    def depth(name: str, path: tuple[str, ...]) -> int:
        if name in path:
            raise ValueError(f"a cycle of imports: {' -> '.join((*path, name))}")
        if name not in seen:
            seen[name] = 1 + max((depth(x, (*path, name)) for x in graph[name]), default=0)
        return seen[name]

    return max(depth(name, ()) for name in graph)


def module_cycles() -> list[str]:
    """Pairs of modules that import each other at module level."""
    direct = {name: _top_level(name) for name in modules()}
    return [f"{a} <-> {b}" for a, b in combinations(direct, 2) if b in direct[a] and a in direct[b]]


def _top_level(name: str) -> set[str]:
    """Modules of the package imported when the module is."""
    return {other for node in tree(name).body for other in _imported(node)}


def file_lengths() -> dict[str, int]:
    """Lines of every module."""
    return {name: len(path.read_text().splitlines()) for name, path in modules().items()}


def functions() -> Iterator[Function]:
    """Every function and method of the package."""
    for name in modules():
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.FunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = len([x for x in given if x.arg not in ("self", "cls")])
                lines = (node.end_lineno or 0) - node.lineno + 1
                yield Function(f"{name}:{node.name}", lines, count)


def repetitions() -> list[str]:
    """Pairs of places in different files, or apart in one, that share six or more lines."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, path in modules().items():
        lines = _code_lines(path)
        for start in range(len(lines) - WINDOW + 1):
            window = lines[start : start + WINDOW]
            places[tuple(text for _, text in window)].append((name, window[0][0]))
    pairs = {}
    for found in places.values():
        for (one, line), (other, there) in combinations(found[:8], 2):
            # Windows that overlap in both files belong to one pair.
            pairs.setdefault(
                (one, other, (line - there) // WINDOW), f"{one}:{line} ~ {other}:{there}"
            )
    return sorted(pairs.values())


def _code_lines(path: Path) -> list[tuple[int, str]]:
    """Numbered lines of code: no blank lines, comments, docstrings, imports, lone punctuation."""
    text = path.read_text()
    passed = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            passed |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    return [
        (number, line)
        for number, line in lines
        if len(line) > 3 and not line.startswith("#") and number not in passed
    ]


def shared_names() -> dict[str, list[str]]:
    """Public module-level names that are defined in more than one module."""
    homes = defaultdict(list)
    for name in modules():
        for node in tree(name).body:
            for defined in _defined(node):
                if not defined.startswith("_"):
                    homes[defined].append(name)
    return {name: found for name, found in sorted(homes.items()) if len(found) > 1}


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return [x.id for target in targets for x in ast.walk(target) if isinstance(x, ast.Name)]


def main() -> None:
    """Print all measurements."""
    lengths, found, graph = file_lengths(), [*functions()], unit_imports()
    print(f"units {len(graph)}, layers {layers()}, imports {sum(map(len, graph.values()))}")
    print(f"upward imports {len(upward_imports())}", *upward_imports()[:20], sep="\n  ")
    print(f"cycles of modules {len(module_cycles())}", *module_cycles()[:20], sep="\n  ")
    print(
        f"files {len(lengths)}, lines {sum(lengths.values())}, "
        f"median {statistics.median(lengths.values()):g}, most {max(lengths.values())}"
    )
    for name, lines in sorted(lengths.items(), key=lambda item: -item[1]):
        if lines > 250:
            print(f"  {name} {lines}")
    for title, wrong in (
        ("functions over 40 lines", [x for x in found if x.lines > 40]),
        ("functions of more than 6 parameters", [x for x in found if x.parameters > 6]),
    ):
        print(title, len(wrong))
        for x in wrong:
            print(f"  {x.place} {x.lines} lines, {x.parameters} parameters")
    pairs = repetitions()
    print(
        f"repetitions {len(pairs)}, {1000 * len(pairs) / sum(lengths.values()):.2f} per 1000 lines"
    )
    for pair in pairs:
        print(f"  {pair}")
    names = shared_names()
    print(f"public names defined more than once {len(names)}")
    for name, homes in names.items():
        print(f"  {name}: {', '.join(homes)}")


if __name__ == "__main__":
    main()
