"""Trials that were proposed and wait for a program, by the program they need."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fp3o.errors import SettingError
from fp3o.experiments.sweep.settings import program_key
from fp3o.experiments.sweep.study import FAILED, SweepStudy
from fp3o.runs.run_config import RunConfig


class TrialQueue:
    """Proposes trials as late as possible, and hands them out by program.

    At most `parallel` proposed trials wait at a time: those of other programs.
    """

    def __init__(self, study: SweepStudy, waiting: Sequence[int] = ()):
        self.study, self.settings = study, study.settings
        self.waiting = [*waiting]
        self._configs: dict[int, RunConfig] = {}

    @property
    def proposed(self) -> int:
        """Number of trials proposed so far."""
        return len(self.study.records())

    def choose_program(self) -> str | None:
        """The program that most waiting trials need; None if no trial is left."""
        while self._may_ask():
            self.ask()
        if not self.waiting:
            return None
        counts = Counter(self.key(number) for number in self.waiting)
        return counts.most_common(1)[0][0]

    def next(self, key: str) -> int | None:
        """The next trial of a program; None if there is none."""
        while True:
            if found := [number for number in self.waiting if self.key(number) == key]:
                self.waiting.remove(found[0])
                return found[0]
            if not self._may_ask():
                return None
            self.ask()

    def config(self, number: int) -> RunConfig:
        """The settings of a trial."""
        if number not in self._configs:
            self._configs[number] = self.settings.trial_config(self.study.params(number))
        return self._configs[number]

    def key(self, number: int) -> str:
        """The program that a trial needs."""
        return program_key(self.config(number))

    def end(self, number: int, state: str, scores: Sequence[float], **facts: Any) -> None:
        """End a trial."""
        self.study.tell(number, state, scores, **facts)
        self._configs.pop(number, None)

    def _may_ask(self) -> bool:
        room = len(self.waiting) < self.settings.options.parallel
        return room and self.proposed < self.settings.trials

    def ask(self) -> None:
        """Propose a trial, which then waits; one that cannot work has failed at once."""
        number = self.study.ask()
        try:
            self.config(number)
        except SettingError as error:  # settings that do not go together
            self.study.tell(number, FAILED, (), reason=str(error))
        else:
            self.waiting.append(number)
