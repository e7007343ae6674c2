"""The page on many machines: its table comes from simulated schedules that can be repeated."""

import json
import re

import pytest
from cell_mutants import MUTANTS
from leased_cells_table import BEGIN, END, NUMBERS, PAGE, SEEDS, SETTINGS, page_with_table, simulate

TEXT = PAGE.read_text()
STORED = json.loads(NUMBERS.read_text())


def test_table_is_that_of_the_schedules() -> None:
    """The table of the page is made from the stored numbers, which have all rows and seeds."""
    assert TEXT.count(BEGIN) == TEXT.count(END) == 1
    assert page_with_table(TEXT, STORED) == TEXT
    assert {name: len(rows) for name, rows in STORED.items()} == dict.fromkeys(SETTINGS, SEEDS)


def test_a_schedule_gives_the_stored_numbers() -> None:
    """A change of the protocol or of the simulation asks for new numbers."""
    name = "desktop computers, one dishonest and one broken"
    assert simulate(SETTINGS[name], 0) == STORED[name][0]


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_schedules_give_the_stored_numbers(name: str) -> None:
    """The first two of every row."""
    assert [simulate(SETTINGS[name], seed) for seed in range(2)] == STORED[name][:2]


def test_the_page_names_what_is_tested() -> None:
    """The number of variants with a mistake, and the probabilities of the text."""
    assert f"{len(MUTANTS)} variants" in TEXT
    (text,) = re.findall(r"probability 1 - 0\.9\^\*m\*: (.*?) of a cell", TEXT)
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    assert numbers == [round(100 * (1 - 0.9**10)), 10, round(100 * (1 - 0.9**25)), 25]
