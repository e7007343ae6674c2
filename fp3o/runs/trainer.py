"""The training loop: iterations, evaluations, metrics and checkpoints of one run."""

import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fp3o.errors import NonFiniteError
from fp3o.runs.best import BestPolicies
from fp3o.runs.checkpoint import TrainCheckpoint, from_arrays, shared_checkpoint
from fp3o.runs.directory import RunDirectory
from fp3o.runs.evaluation import DURING_TRAINING, evaluate_params, evaluation_row
from fp3o.runs.metrics_log import Row, WorkerFailures, metric_rows
from fp3o.runs.players import PlayerSource, make_pool
from fp3o.runs.processes import agree
from fp3o.runs.programs import make_program
from fp3o.runs.progress import Display, TrainingStatus
from fp3o.runs.recorder import NoRecorder, RunRecorder
from fp3o.runs.results import final_evaluation
from fp3o.runs.run_config import RunConfig
from fp3o.runs.seed_axis import first_non_finite
from fp3o.runs.signals import stop_at_once, stop_signals
from fp3o.training.episodes import EvalEpisodes
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
        loggers: Sequence[str],
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
        self._files = (
            RunRecorder(config, directory, self.program.setup, loggers)
            if directory
            else NoRecorder()
        )
        self._failures = WorkerFailures(self.program.env)
        # Of this process only: an earlier one may have run on another machine.
        self._seconds: dict[str, float | None] = {"compile": None, "train": None}
        self._rate: float | None = None
        self._restore()
        self._check_finite()

    @property
    def step(self) -> int:
        """Environment steps per seed so far."""
        return self.iteration * self.config.steps_per_iteration

    @property
    def path(self) -> str:
        """The run directory; empty in a process that writes nothing."""
        return self._files.path

    def run(self) -> bool:
        """Train to the end or until a stop signal, then evaluate; whether the run is finished."""
        try:
            if self.iteration < self.config.iterations:
                self._files.open(self.step)
                self._train()
            finished = self.iteration >= self.config.iterations
            (has_results,) = agree(self._files.has_results)
            if finished and not has_results:
                self._finish()
        except KeyboardInterrupt:
            self.display.close()
            self.display.say(
                "interrupted; the last checkpoint is intact: continue with "
                f"`fp3o resume {self.path}`"
            )
            raise
        finally:
            self.display.close()
            self._files.close()
            if self._pool:
                self._pool.close()
        return finished

    def _train(self) -> None:
        started = time.perf_counter()
        with self.display.waiting("compiling"), stop_at_once():
            self.program.compile(self.checkpoint.state)
        self._seconds["compile"] = time.perf_counter() - started
        self.display.say(f"compiled in {self._seconds['compile']:.1f} s; output in {self.path}")
        self._files.discard_results()
        self._loop()
        if self.iteration < self.config.iterations:
            self.display.close()
            self.display.say(
                f"stopped at step {self.step} and saved: continue with `fp3o resume {self.path}`"
            )

    def _loop(self) -> None:
        """Iterate until the last iteration or a stop signal; save periodically and at the end."""
        config = self.config
        started = saved = time.perf_counter()
        with stop_signals(self.display.say) as stop:
            if self._is_new:
                self._write_rows([{}] * config.seeds, self._evaluate())
                # From now on a run without any checkpoint has lost it and does not start over.
                self._files.save_checkpoint(0, self.program.fetch(self.checkpoint))
            stopped, status = False, self._status()  # all is compiled: the rate counts from here
            while self.iteration < config.iterations and not stopped:
                rows = self._iterate(started)
                status.advance(self.step, rows)
                self.display.update(status)
                if forecast := status.forecast():
                    self.display.say(forecast)
                due = time.perf_counter() - saved >= config.save_every
                stopped, due = agree(bool(stop), due)
                if due:
                    self._save()
                    saved = time.perf_counter()
            self._seconds["train"] = time.perf_counter() - started
            self._rate = status.rate
            self._save()

    def _status(self) -> TrainingStatus:
        config = self.config
        title = f"{config.task} · {config.settings['algorithm']} · {config.learner.sharing}"
        total = config.iterations * config.steps_per_iteration
        return TrainingStatus(title, total, self.step, config.seeds)

    def _iterate(self, started: float) -> list[Row]:
        """One iteration, with an evaluation and rows of metrics where they are due."""
        config, iteration = self.config, self.iteration + 1
        state, metrics = self._update()
        if message := self._failures.news(self.step):
            self.display.say(message)
        self.checkpoint = self.checkpoint._replace(state=state)
        self.iteration = iteration
        last = iteration == config.iterations
        due = last or (config.eval_every and iteration % config.eval_every == 0)
        evaluated = self._evaluate() if due else None
        rows = metric_rows(jax.device_get(metrics), config.seeds)
        if iteration % config.log_every == 0 or due:
            rows = self._write_rows(rows, evaluated)
            self._files.write_time(self.step, time.perf_counter() - started)
        return rows

    def _update(self) -> tuple[TrainState, dict[str, Any]]:
        """One iteration of the program; if it fails, the state before it is saved."""
        try:
            return self.program.iterate(self.checkpoint.state)
        except Exception:
            self._save()
            self.display.close()
            self.display.say(
                f"stopped by an error and saved at step {self.step}: once its cause is removed, "
                f"continue with `fp3o resume {self.path}`; other settings need a new run"
            )
            raise

    def _check_finite(self) -> None:
        """Reject an initial or restored state that could neither be trained nor saved again."""
        learner, best = self.program.fetch(self.checkpoint.state.learner), self.checkpoint.best
        seeds = self.config.seed_numbers
        broken = first_non_finite(learner, seeds)
        if broken := broken or first_non_finite(learner._replace(actor=best.actor), seeds):
            source = "the initial state"
            if self.iteration:
                source = f"the newest checkpoint of {self.path} (to use the one before it, move it)"
            raise NonFiniteError(f"{broken} in {source}: it cannot be trained further")

    def _write_rows(self, rows: list[Row], evaluated: list[Row] | None) -> list[Row]:
        """Append rows of metrics, one per seed, each starting with iteration, step and seed."""
        progress = {"iteration": self.iteration, "step": self.step}
        counts = self._failures.counts()
        evaluated = evaluated or [{}] * len(rows)
        seeds = self.config.seed_numbers
        full = [
            {**progress, "seed": seed, **counts, **row, **evaluation}
            for seed, row, evaluation in zip(seeds, rows, evaluated, strict=True)
        ]
        self._files.write_rows(full)
        return full

    def _evaluate(self) -> list[Row]:
        """Evaluate the current policies and keep the best per seed."""
        config, (state, best) = self.config, self.checkpoint
        purpose = DURING_TRAINING, self.iteration
        actor = state.learner.actor
        evaluated = evaluate_params(self.program, config, actor, config.eval_episodes, purpose)
        names = self.program.setup.spec.episode_metrics
        rows = [evaluation_row(EvalEpisodes(*one), names) for one in zip(*evaluated, strict=True)]
        score = np.array([row["eval_return"] for row in rows], np.float64)  # NaN for None
        best = best.updated(score, self.step, self.program.fetch(actor))
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
        self._failures.restore(self._files.rewind(cursor))

    def _save(self) -> None:
        """Write a checkpoint and the current policies."""
        checkpoint = self.program.fetch(self.checkpoint)
        self._files.save_checkpoint(self.iteration, checkpoint)
        self._files.save_policies(self.step, checkpoint)

    def note_resumption(self) -> None:
        """Record the machine and the length with which the run continues."""
        self._files.note_resumption(self.step)
