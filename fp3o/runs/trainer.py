"""The training loop: iterations, evaluations, metrics and checkpoints of one run."""

import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fp3o.errors import NonFiniteError
from fp3o.runs.best import BestPolicies
from fp3o.runs.checkpoint import TrainCheckpoint, from_arrays, to_arrays
from fp3o.runs.checkpoint_files import LENGTH, Checkpoint, settings_digest
from fp3o.runs.directory import RunDirectory
from fp3o.runs.evaluation import DURING_TRAINING, evaluate_params, evaluation_row, make_program
from fp3o.runs.metrics_log import MetricsLog, Row, WorkerFailures, metric_rows
from fp3o.runs.players import PlayerSource, make_pool
from fp3o.runs.progress import Display, TrainingStatus
from fp3o.runs.provenance import provenance_record
from fp3o.runs.results import final_evaluation, write_policies
from fp3o.runs.run_config import RunConfig
from fp3o.runs.seed_axis import first_non_finite
from fp3o.runs.signals import stop_signals
from fp3o.spec import FORMAT
from fp3o.training.episodes import EvalEpisodes
from fp3o.training.program import Program, TrainState


class Trainer:
    """Trains a run in this process, from its newest checkpoint if there is one."""

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        display: Display,
        loggers: Sequence[str],
        players: PlayerSource | None = None,
    ):
        self.config, self.directory, self.display = config, directory, display
        self._pool = make_pool(config, players, display.say)
        self.program: Program = make_program(config, self._pool)
        state = self.program.init(config.seed)
        best = BestPolicies.initial(state.learner.actor, config.seeds)
        self.checkpoint = TrainCheckpoint(state, best)
        self.iteration = 0
        self._settings = settings_digest(directory.read_settings())
        self._log = MetricsLog(directory, loggers)
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
        """The run directory, for messages."""
        return str(self.directory.path)

    def run(self) -> bool:
        """Train to the end or until a stop signal, then evaluate; whether the run is finished."""
        try:
            if self.iteration < self.config.iterations:
                self._log.open(self.config, self.step + 1 if self.step else 0)
                self._train()
            finished = self.iteration >= self.config.iterations
            if finished and not (self.directory.path / "results.json").exists():
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
            self._log.close()
            if self._pool:
                self._pool.close()
        return finished

    def _train(self) -> None:
        started = time.perf_counter()
        with self.display.waiting("compiling"):
            self.program.compile(self.checkpoint.state)
        self._seconds["compile"] = time.perf_counter() - started
        self.display.say(f"compiled in {self._seconds['compile']:.1f} s; output in {self.path}")
        for outdated in ("results.json", "report.html"):
            (self.directory.path / outdated).unlink(missing_ok=True)
        self._loop()
        if self.iteration < self.config.iterations:
            self.display.close()
            self.display.say(
                f"stopped at step {self.step} and saved: continue with `fp3o resume {self.path}`"
            )

    def _loop(self) -> None:
        """Iterate until the last iteration or a stop signal; save periodically and at the end."""
        config, status = self.config, self._status()
        started = saved = time.perf_counter()
        with stop_signals(self.display.say) as stop:
            if self._log.cursor == 0:
                self._write_rows([{}] * config.seeds, self._evaluate())
                # From now on a run without any checkpoint has lost it and does not start over.
                self._save_checkpoint()
            while self.iteration < config.iterations and not stop:
                rows = self._iterate(started)
                status.advance(self.step, rows)
                self.display.update(status)
                if time.perf_counter() - saved >= config.save_every:
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
            seconds = time.perf_counter() - started
            self.directory.append("timing.jsonl", [{"step": self.step, "seconds": seconds}])
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
        learner, best = self.checkpoint.state.learner, self.checkpoint.best
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
        self._log.write(full)
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
        self.checkpoint = TrainCheckpoint(state, best.updated(score, self.step, actor))
        return rows

    def _finish(self) -> None:
        """The final evaluation, in `results.json` and in the policies."""
        config = self.config
        with self.display.waiting(f"final evaluation: {config.final_episodes} episodes per seed"):
            results = final_evaluation(self.program, config, self.checkpoint)
        evaluations = {which: results[which] for which in ("last", "best")}
        write_policies(self.directory, self.program.setup, self.checkpoint, self.step, evaluations)
        totals = {"steps": self.step, "seconds": self._seconds, "steps_per_second": self._rate}
        content = {"format": FORMAT, **totals, **results, **self._failures.counts()}
        self.directory.write_json("results.json", content)

    def _restore(self) -> None:
        """Load the newest intact checkpoint and drop the metrics written after it."""
        stored, cursor = self.directory.newest(), 0
        if stored is not None:
            self.checkpoint = from_arrays(self.checkpoint, stored.arrays)
            self.iteration, cursor = stored.iteration, stored.cursor
        self._failures.restore(self._log.rewind(cursor))

    def _save_checkpoint(self) -> None:
        arrays, log = to_arrays(self.checkpoint), self._log
        stored = Checkpoint(self.iteration, log.cursor, arrays, self._settings, log.digest)
        self.directory.save(stored, self.config.keep_checkpoints)

    def _save(self) -> None:
        """Write a checkpoint and the current policies."""
        self._save_checkpoint()
        write_policies(self.directory, self.program.setup, self.checkpoint, self.step)

    def note_resumption(self) -> None:
        """Record in config.json the machine, versions and length with which the run continues."""
        record = self.directory.read_json("config.json")
        now = provenance_record(self.config.settings, record["agents"])
        here = {name: now[name] for name in ("versions", "commit", "device", "created")}
        resumed = [*record.get("resumed", []), {"step": self.step, **here}]
        # Only the length changes: the checkpoints were written with the other settings as they are.
        settings = {**record["settings"], LENGTH: now["settings"][LENGTH]}
        content = {**record, "settings": settings, "resumed": resumed}
        self.directory.write_json("config.json", content)
