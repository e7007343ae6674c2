"""The training loop: iterations, evaluations, metrics and checkpoints of one run."""

import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from fp3o.runs.best import BestPolicies
from fp3o.runs.changes import RunHyperparameters
from fp3o.runs.checkpoint import TrainCheckpoint, from_arrays, shared_checkpoint
from fp3o.runs.directory import RunDirectory
from fp3o.runs.evaluation import evaluation_rows
from fp3o.runs.loggers import Loggers
from fp3o.runs.metrics_log import Row, WorkerFailures, metric_rows
from fp3o.runs.players import PlayerSource, make_pool
from fp3o.runs.processes import agree
from fp3o.runs.programs import make_program
from fp3o.runs.progress import Display, TrainingStatus
from fp3o.runs.recorder import NoRecorder, RunRecorder
from fp3o.runs.results import final_evaluation
from fp3o.runs.run_config import RunConfig
from fp3o.runs.seed_axis import require_finite
from fp3o.runs.signals import stop_at_once, stop_signals
from fp3o.runs.start import started
from fp3o.runs.training_videos import video_due
from fp3o.runs.turn import TrainingStep
from fp3o.training.mesh import Devices
from fp3o.training.program import Program
from fp3o.training.state import TrainState


class Trainer:
    """Trains a run in this process, from its newest checkpoint if there is one.

    Without a directory nothing is written: another process of the same run does it.
    """

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory | None,
        display: Display,
        loggers: Loggers,
        devices: Devices | None = None,
        players: PlayerSource | None = None,
    ):
        self.config, self.display = config, display
        self._pool = make_pool(config, players, display)
        self.program: Program = make_program(config, devices, self._pool)
        state = self.program.init(config.seed)
        best = BestPolicies.initial(self.program.fetch(state.learner.actor), config.seeds)
        self.checkpoint = TrainCheckpoint(state, best)
        self.iteration, self._is_new = 0, True
        self.hyperparameters = RunHyperparameters(config.learner.hyperparameters, config.seeds)
        setup = self.program.setup
        self._files = RunRecorder(config, directory, setup, loggers) if directory else NoRecorder()
        self._failures = WorkerFailures(self.program.env)
        # Of this process only: an earlier one may have run on another machine.
        self._seconds: dict[str, float | None] = {"compile": None, "train": None}
        self._rate: float | None = None
        self._restore()
        learner = self.program.fetch(self.checkpoint.state.learner)
        source = self.path if self.iteration else ""
        require_finite(learner, self.checkpoint.best.actor, config.seed_numbers, source)

    @property
    def step(self) -> int:
        """Environment steps per seed so far."""
        return self.iteration * self.config.steps_per_iteration

    @property
    def path(self) -> str:
        """The run directory; empty in a process that writes nothing."""
        return self._files.path

    @property
    def finished(self) -> bool:
        """Whether the last iteration is done."""
        return self.iteration >= self.config.iterations

    def turns(self) -> Iterator[TrainingStep]:
        """Train to the end or until a stop signal, then evaluate; every iteration is handed over.

        The metrics of an iteration are written when its turn ends. If the loop is left before, they
        are, too, and the state is saved.
        """
        try:
            if not self.finished:
                self._files.open(self.step)
                self._compile()
                self._files.discard_results()
                yield from self._loop()
                if not self.finished:
                    self._say_how_to_resume(f"stopped at step {self.step} and saved")
            (has_results,) = agree(self._files.has_results)
            if self.finished and not has_results:
                self._finish()
        except KeyboardInterrupt:
            self._say_how_to_resume("interrupted; the last checkpoint is intact")
            raise
        finally:
            self.display.close()
            self._files.close()
            if self._pool:
                self._pool.close()

    def _compile(self) -> None:
        started = time.perf_counter()
        with self.display.waiting("compiling"), stop_at_once():
            self.program.compile(self.checkpoint.state)
        self._seconds["compile"] = time.perf_counter() - started
        self.display.say(f"compiled in {self._seconds['compile']:.1f} s; output in {self.path}")

    def _say_how_to_resume(self, reason: str) -> None:
        self.display.close()
        self.display.say(f"{reason}: continue with `fp3o resume {self.path}`")

    def _loop(self) -> Iterator[TrainingStep]:
        """Iterate until the last iteration or a stop signal; save periodically and at the end."""
        config = self.config
        self._started = saved = time.perf_counter()
        with stop_signals(self.display.say) as stop:
            if self._is_new:
                self._files.write_rows(self._numbered(self._evaluate()))
                # From now on a run without any checkpoint has lost it and does not start over.
                self._files.save_checkpoint(0, self.program.fetch(self.checkpoint), {})
            stopped = False  # all is compiled: the rate counts from here
            status = TrainingStatus(config.title, config.total_steps, self.step, config.seeds)
            while not (self.finished or stopped):
                turn = self._iterate()
                try:
                    yield turn
                except GeneratorExit:
                    self.record(turn)
                    self.save()
                    self._say_how_to_resume(f"left the loop at step {self.step} and saved")
                    raise
                status.advance(self.step, self.record(turn))
                self.display.update(status)
                if forecast := status.forecast():
                    self.display.say(forecast)
                stopped, due = agree(bool(stop), time.perf_counter() - saved >= config.save_every)
                if due:
                    self.save()
                    saved = time.perf_counter()
            self._seconds["train"] = time.perf_counter() - self._started
            self._rate = status.rate
            self.save()

    def _iterate(self) -> TrainingStep:
        """One iteration, with an evaluation where it is due."""
        config = self.config
        state, metrics = self._update()
        if message := self._failures.news(self.step):
            self.display.say(message)
        self.checkpoint = self.checkpoint._replace(state=state)
        self.iteration += 1
        due = self.finished or (config.eval_every and self.iteration % config.eval_every == 0)
        evaluated = self._evaluate() if due else None
        rows = metric_rows(jax.device_get(metrics), config.seeds)
        pairs = zip(rows, self.hyperparameters.rows(), strict=True)
        return TrainingStep(self, [row | values for row, values in pairs], evaluated)

    def _update(self) -> tuple[TrainState, dict[str, Any]]:
        """One iteration of the program; if it fails, the state before it is saved."""
        numbers = self.hyperparameters.values.at(self.iteration / self.config.iterations)
        self.hyperparameters.current = numbers
        hparams = self.program.hyperparameters(numbers)
        try:
            return self.program.iterate(self.checkpoint.state, hparams)
        except Exception:
            self.save()
            self.display.close()
            self.display.say(
                f"stopped by an error and saved at step {self.step}: once its cause is removed, "
                f"continue with `fp3o resume {self.path}`; other settings need a new run"
            )
            raise

    def record(self, turn: TrainingStep) -> list[Row]:
        """Write the metrics of a turn, once; returns its rows."""
        if stopping := turn.stopped and not self.finished:
            self.config = self.config.with_settings({"steps": self.step})
            turn.evaluated = turn.evaluated or self._evaluate()
        config, rows = self.config, self._numbered(turn.rows)
        if turn.over:
            return rows
        turn.over = True
        if self.iteration % config.log_every == 0 or turn.evaluated or turn.own:
            self._files.write_rows(rows)
            self._files.write_time(self.step, time.perf_counter() - self._started)
        if video_due(config.video_every, self.step, config.steps_per_iteration):
            actor = self.program.fetch(self.checkpoint.state.learner.actor)
            self._files.save_video(self.step, actor)
        if stopping:  # shorter once this is saved: earlier checkpoints continue as planned
            self.save()
            self._files.shorten(self.step)
        return rows

    def _numbered(self, rows: list[Row]) -> list[Row]:
        """Rows of metrics, one per seed, each starting with iteration, step and seed."""
        progress = {"iteration": self.iteration, "step": self.step}
        counts = self._failures.counts()
        pairs = zip(self.config.seed_numbers, rows, strict=True)
        return [{**progress, "seed": seed, **counts, **row} for seed, row in pairs]

    def _evaluate(self) -> list[Row]:
        """Evaluate the current policies and keep the best per seed."""
        config, (state, best) = self.config, self.checkpoint
        rows = evaluation_rows(self.program, config, state.learner.actor, self.iteration)
        score = np.array([row["eval_return"] for row in rows], np.float64)  # NaN for None
        best = best.updated(score, self.step, self.program.fetch(state.learner.actor))
        self.checkpoint = TrainCheckpoint(state, best)
        return rows

    def _finish(self) -> None:
        """The final evaluation, in `results.json` and in the policies."""
        config = self.config
        with self.display.waiting(f"final evaluation: {config.final_episodes} episodes per seed"):
            results = final_evaluation(self.program, config, self.checkpoint)
        totals = {"seconds": self._seconds, "steps_per_second": self._rate}
        content = {**totals, **results, **self._failures.counts()}
        self._files.finish(self.step, self.program.fetch(self.checkpoint), content)

    def _restore(self) -> None:
        """Load the newest intact checkpoint and drop the metrics written after it."""
        stored, cursor = shared_checkpoint(self._files.newest()), 0
        if stored is not None:
            state, best = from_arrays(self.checkpoint, stored.arrays)
            self.checkpoint = TrainCheckpoint(self.program.place(state), best)
            self.iteration, cursor, self._is_new = stored.iteration, stored.cursor, False
            self.hyperparameters.change(stored.changes)
        elif self.config.starts:
            state = started(self.config, self.program, self.checkpoint.state, self._files.sources)
            best = BestPolicies.initial(self.program.fetch(state.learner.actor), self.config.seeds)
            self.checkpoint = TrainCheckpoint(state, best)
        self._failures.restore(self._files.rewind(cursor))

    def save(self) -> None:
        """Write a checkpoint and the current policies."""
        checkpoint = self.program.fetch(self.checkpoint)
        self._files.save_checkpoint(self.iteration, checkpoint, self.hyperparameters.changes)
        self._files.save_policies(self.step, checkpoint)

    def note_resumption(self) -> None:
        """Record the machine and the length with which a run continues, if it does."""
        if self.iteration < self.config.iterations:
            self._files.note_resumption(self.step)
