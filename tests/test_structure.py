"""Structure of the package: sizes of files, order of imports, unique names."""

import statistics

import structure
from setting_path import setting_path

CONTRACTS = {"EXPERIMENT", "FAMILIES", "FAMILY", "make_env"}
"""Names that mean the same in every module that has them: what a folder or file must define."""


def test_imports_go_one_way_through_few_layers() -> None:
    """At most 23 units on at most 10 layers, none imports a higher one, no cycles."""
    assert structure.upward_imports() == []
    assert structure.module_cycles() == []
    assert structure.layers() <= 10
    assert len(structure.unit_imports()) <= 23


def test_every_package_is_in_the_order() -> None:
    """A new top-level package has to be put into `structure.ORDER`."""
    placed = {name for names in structure.ORDER for name in names}
    assert {structure.unit(name) for name in structure.modules()} == placed


def test_files_and_functions_are_short() -> None:
    """Files: median at most 120 lines, none over 250. Functions: 40 lines, 6 parameters."""
    lengths = structure.file_lengths()
    assert statistics.median(lengths.values()) <= 120
    assert {name: lines for name, lines in lengths.items() if lines > 250} == {}
    assert [x for x in structure.functions() if x.lines > 40 or x.parameters > 6] == []


def test_code_is_not_repeated() -> None:
    """Fewer than one pair of repeated six-line places per thousand lines."""
    lines = sum(structure.file_lengths().values())
    assert len(structure.repetitions()) < lines / 1000


def test_public_names_mean_one_thing() -> None:
    """No public name is defined in two modules, apart from what a contract asks for."""
    assert {k: v for k, v in structure.shared_names().items() if k not in CONTRACTS} == {}


def test_a_setting_passes_few_modules() -> None:
    """At most 8 modules between `fp3o.train` and the loss that uses the setting."""
    path = setting_path()
    assert path[-1] == "fp3o.learning.losses"
    assert len(path) <= 8, path
