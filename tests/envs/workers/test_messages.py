"""What workers say and print, in messages for people."""

import pytest
from worker_pools import IDLE, QUICK, plan_of, pool

from fp3o.envs.workers.messages import OUTPUT_LINES, OUTPUT_WIDTH, FailureMessage, last_lines
from fp3o.envs.workers.protocol import WorkerPoolError


def test_only_the_last_lines_are_shown() -> None:
    """Few, short, and without anything that acts on a terminal."""
    text = "\n".join(f"\x1b[31mline {k}\x07\t\u202e{'x' * 1000}" for k in range(1000))
    lines = last_lines(text).splitlines()
    assert len(lines) == OUTPUT_LINES and max(map(len, lines)) <= OUTPUT_WIDTH
    assert lines[-1].startswith(r"\x1b[31mline 999\x07") and r"\u202e" in lines[-1]
    assert all(line.isprintable() for line in lines)
    assert last_lines(" \n\n") == ""
    assert len(FailureMessage("crashed", text).encode()) < 10_000


@pytest.mark.parametrize("text", ["\x1b]0;owned\x07", "\n", "\\", "many words "])
def test_what_a_crashing_worker_printed_is_quoted_briefly(text: str) -> None:
    """Two thousand times the same text, of which the end is shown."""
    made = pool((f"print{text}", 1), timeouts=QUICK._replace(restarts=0))
    plan_of(made)[1] = plan_of(made)[0]
    made.reset([0])
    with pytest.raises(WorkerPoolError, match="crashed, exit code 7") as error:
        made.step({0: IDLE})
    lines = str(error.value).splitlines()
    assert len(lines) <= OUTPUT_LINES + 4 and max(map(len, lines)) <= OUTPUT_WIDTH + 100
    assert all(line.isprintable() for line in lines)
