"""Training of all trials: iterations, evaluations, ends and new trials, with checkpoints.

One program is in use at a time. All its trials are evaluated together, every few iterations; there
trials end, and the next ones take their places. Everything that decides is a count of iterations or
a score, never the clock: an interrupted sweep continues as it would have without the interruption.
"""

import time
from typing import Any

import numpy as np

from fp3o.experiments.sweep.folder import SweepFolder
from fp3o.experiments.sweep.lanes import Lanes, Slot, measured
from fp3o.experiments.sweep.queue import TrialQueue
from fp3o.experiments.sweep.settings import SweepSettings
from fp3o.experiments.sweep.study import FAILED, FINISHED, PRUNED, SweepStudy, best_record
from fp3o.reports.phrasing import number_text
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.runs.progress import Display, TrainingStatus
from fp3o.runs.signals import stop_at_once, stop_signals

NO_EPISODE = "no episode of its evaluation ended"


class SweepLoop:
    """Trains the trials of a sweep, from the newest checkpoint if there is one."""

    def __init__(self, settings: SweepSettings, folder: SweepFolder, display: Display):
        self.settings, self.folder, self.display = settings, folder, display
        stored = folder.restore(settings)
        self.study = SweepStudy(settings, folder.path)
        self.queue, self.tick = TrialQueue(self.study), 0
        self.lanes: Lanes | None = None
        self._program = ""
        if stored:
            self.tick, (table, arrays) = stored
            self._restore(table, arrays)
        self._saved = time.perf_counter()
        self._records = self.study.records()

    def run(self) -> bool:
        """Train until all trials have ended or a signal comes; whether all have ended."""
        base, total = self.settings.base, self.settings.trials * self.settings.base.steps
        title = f"{base.task} · {self.settings.trials} trials of {', '.join(self.settings.space)}"
        status = TrainingStatus(title, total, self._done(), base.seeds)
        with stop_signals(self.display.say) as stop:
            while not stop and (self.lanes or self._open_program()):
                if self.lanes:
                    self._advance(self.lanes)
                self._show(status)
                if time.perf_counter() - self._saved >= base.save_every:
                    self._save()
            finished = self.lanes is None and not self.queue.waiting
            self._save()
        self.display.close()
        return finished

    @stop_at_once()  # all earlier trials have ended and are stored
    def _open_program(self) -> bool:
        """Start the trials of the program that most of them need; False if none is left."""
        key = self.queue.choose_program()
        if key is None:
            return False
        trials: list[int] = []
        while len(trials) < self.settings.options.parallel:
            if (trial := self.queue.next(key)) is None:
                break
            trials.append(trial)
        compiles, self._program = key != self._program, key
        self.lanes = lanes = Lanes(self.queue.config(trials[0]), len(trials))
        for index, trial in enumerate(trials):
            lanes.start(index, trial, self.queue.config(trial))
        if compiles:
            with self.display.waiting(f"compiling a program of {len(trials)} trials"):
                self._advance(lanes)
        return True

    def _advance(self, lanes: Lanes) -> None:
        """One iteration of the trials in the program, and what is due after it."""
        started = time.perf_counter()
        for index, reason in lanes.iterate().items():
            self._fail(lanes, index, reason)
        self.tick += 1
        due = not lanes.busy or lanes.iterations % lanes.config.eval_every == 0
        if due:
            self._evaluate(lanes)
        for slot in lanes.slots:
            slot.seconds += time.perf_counter() - started
        if due:
            self._refill(lanes)
            self._records = self.study.records()
            self.folder.write_results(self.study)

    def _evaluate(self, lanes: Lanes) -> None:
        """Evaluate all trials: some are pruned, those at the end of training are scored."""
        total = lanes.config.iterations
        at_end = [index for index in lanes.busy if lanes.slots[index].iteration == total]
        training = [index for index in lanes.busy if index not in at_end]
        for index, scores in self._scores(lanes, training, last=False):
            if self._report(lanes, index, scores):
                self._end(lanes, index, PRUNED, scores)
        for index, scores in self._scores(lanes, at_end, last=True):
            self._report(lanes, index, scores)
            self._end(lanes, index, FINISHED, scores)

    def _scores(
        self, lanes: Lanes, indices: list[int], last: bool
    ) -> list[tuple[int, list[float]]]:
        """Scores per seed of the trials in some slots; those without any have failed."""
        if not indices:
            return []
        rows, failed = lanes.evaluate(last)
        found = []
        for index in indices:
            scores = measured(rows[index], self.settings.options.measure, last)
            if index in failed or scores is None:
                self._fail(lanes, index, failed.get(index, NO_EPISODE))
            else:
                found.append((index, scores))
        return found

    def _report(self, lanes: Lanes, index: int, scores: list[float]) -> bool:
        slot = lanes.slots[index]
        number = slot.iteration // lanes.config.eval_every
        return self.study.report(lanes.busy[index], number, float(np.mean(scores)))

    def _fail(self, lanes: Lanes, index: int, reason: str) -> None:
        self.display.say(f"trial {lanes.busy[index]} failed: {reason}")
        self._end(lanes, index, FAILED, [], reason=reason)

    def _end(self, lanes: Lanes, index: int, state: str, scores: list[float], **facts: str) -> None:
        """End the trial of a slot and free it."""
        slot = lanes.slots[index]
        steps = slot.iteration * lanes.config.steps_per_iteration
        numbers = {"steps": steps, "seconds": round(slot.seconds, 3)}
        self.queue.end(lanes.busy[index], state, scores, **numbers, **facts)
        lanes.free(index)

    def _refill(self, lanes: Lanes) -> None:
        """Give free slots the next trials; without any, the program gets smaller or is left."""
        if lanes.refillable:
            for index, slot in enumerate(lanes.slots):
                if slot.trial is None and (trial := self.queue.next(self._program)) is not None:
                    lanes.start(index, trial, self.queue.config(trial))
        if not lanes.busy:
            self.lanes = None
        elif lanes.refillable and len(lanes.busy) <= len(lanes.slots) // 2:
            self.lanes = lanes.shrunk()

    def _done(self) -> int:
        """Steps of all trials so far; one that has ended counts as a whole."""
        steps = sum(record.state != "waiting" for record in self._records)
        steps *= self.settings.base.steps
        if self.lanes:
            size = self.lanes.config.steps_per_iteration
            steps += size * sum(slot.iteration for slot in self.lanes.slots)
        return min(self.settings.trials * self.settings.base.steps, steps)

    def _show(self, status: TrainingStatus) -> None:
        states = [record.state for record in self._records]
        status.done = self._done()
        ended = sum(state != "waiting" for state in states)
        status.numbers["trials"] = f"{ended}/{self.settings.trials}"
        for state in (PRUNED, FAILED):
            if state in states:
                status.numbers[state] = str(states.count(state))
        if best := best_record(self._records, self.settings.options.minimise):
            status.numbers["best"] = f"{number_text(best.score or 0.0)} (trial {best.number})"
        self.display.update(status)

    def _save(self) -> None:
        table: dict[str, Any] = {"waiting": self.queue.waiting, "slots": []}
        arrays: dict[str, np.ndarray] = {}
        if self.lanes:
            table["slots"] = [[x.trial, x.iteration, x.seconds] for x in self.lanes.slots]
            table["iterations"] = self.lanes.iterations
            arrays = to_arrays(self.lanes.state)
        self.folder.save(self.settings, self.tick, (table, arrays))
        self._saved = time.perf_counter()

    def _restore(self, table: Any, arrays: Any) -> None:
        self.queue.waiting = table["waiting"]
        slots = [Slot(*values) for values in table["slots"]]
        if not slots:
            return
        first = next(slot.trial for slot in slots if slot.trial is not None)
        lanes = Lanes(self.queue.config(first), len(slots))
        lanes.state = from_arrays(lanes.state, arrays)
        lanes.iterations, self._program = table["iterations"], self.queue.key(first)
        for index, slot in enumerate(slots):
            if slot.trial is not None:
                lanes.place(index, slot, self.queue.config(slot.trial))
        self.lanes = lanes
