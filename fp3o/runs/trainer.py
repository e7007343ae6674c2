"""One process's work on a run: train, stop at any moment, go on exactly there, judge."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.envs.workers.protocol import FailureCounts
from fp3o.errors import NonFiniteError
from fp3o.policy.export import write_policy
from fp3o.reports import report
from fp3o.runs.best import Best
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.runs.directory import Checkpoint, RunDirectory, RunError
from fp3o.runs.evaluation import BEST, DURING, LAST, baselines, evaluate_params, program_of, summary
from fp3o.runs.loggers import Logger, open_loggers
from fp3o.runs.progress import Display, Status
from fp3o.runs.provenance import describe
from fp3o.runs.run_config import RunConfig
from fp3o.runs.settings import settings_of
from fp3o.runs.signals import stop_signals
from fp3o.training.episodes import EvalEpisodes
from fp3o.training.program import Program, TrainState


class TrainCheckpoint(NamedTuple):
    """Everything a checkpoint holds."""

    state: TrainState
    best: Best


class Trainer:
    """One process's work on a run."""

    def __init__(
        self,
        plan: RunConfig,
        directory: RunDirectory,
        screen: Display,
        loggers: Sequence[str],
        pages: bool = True,
    ):
        self.plan, self.directory, self.screen = plan, directory, screen
        self._pages = pages
        self.program: Program = program_of(plan)
        self.setup = self.program.setup
        self.standing = self._fresh()
        self.iteration, self.cursor = 0, 0
        self._lost_before: dict[str, int] = {}
        self._restore()
        self._lost_told = self._losses()
        self._logger_names = loggers
        self._loggers: list[Logger] = []
        # Of this process: an earlier one may have run elsewhere.
        self._seconds: dict[str, float | None] = {"compile": None, "train": None}
        self._rate: float | None = None

    @property
    def step(self) -> int:
        """Environment steps of a seed so far."""
        return self.iteration * self.plan.steps_per_iteration

    def go(self) -> bool:
        """Train until the plan is done or somebody asks to stop; judge if it is done. Is it?"""
        path, plan = self.directory.path, self.plan
        try:
            if self.iteration < plan.iterations:
                self._loggers = open_loggers(
                    self._logger_names, path, settings_of(plan), self.step + 1 if self.step else 0
                )
                self._train()
            finished = self.iteration >= plan.iterations
            if finished and not (path / "results.json").exists():
                self._judge()
            if finished and self._pages and not (path / "report.html").exists():
                with self.screen.waiting("writing the report"):
                    report([path], path / "report.html")
        except KeyboardInterrupt:
            self.screen.close()
            self.screen.say(f"what was saved is whole: go on with `fp3o resume {path}`")
            raise
        except BrokenPipeError:
            raise
        except OSError as error:
            raise RunError(
                f"cannot write to {path}: {error.strerror or error}. What was saved before is "
                f"whole; mend it and go on with `fp3o resume {path}`"
            ) from error
        finally:
            self.screen.close()
            for logger in self._loggers:
                logger.close()
        return finished

    def _train(self) -> None:
        began = time.perf_counter()
        with self.screen.waiting("compiling"):
            self.program.compile(self.standing.state)
        self._seconds["compile"] = time.perf_counter() - began
        path = self.directory.path
        self.screen.say(f"compiled in {self._seconds['compile']:.1f} s; output in {path}")
        for outdated in ("results.json", "report.html"):
            (path / outdated).unlink(missing_ok=True)
        title = f"{self.plan.task} · {settings_of(self.plan)['algorithm']} · {self.plan.learner.sharing}"
        total = self.plan.iterations * self.plan.steps_per_iteration
        status = Status(title, total, self.step, self.plan.seeds)
        began = saved = time.perf_counter()
        with stop_signals(self.screen.say) as stop:
            if self.cursor == 0:
                self._log([self._row(k) for k in self.plan.seed_numbers], self._evaluation())
            while self.iteration < self.plan.iterations and not stop:
                rows = self._iterate(began)
                status.advance(self.step, rows)
                self.screen.update(status)
                if time.perf_counter() - saved >= self.plan.save_every:
                    self._save()
                    saved = time.perf_counter()
            self._seconds["train"] = time.perf_counter() - began
            self._rate = status.rate
            self._save()
        if self.iteration < self.plan.iterations:
            self.screen.close()
            self.screen.say(
                f"stopped at step {self.step} and saved: go on with `fp3o resume {path}`"
            )

    def _iterate(self, began: float) -> list[dict[str, Any]]:
        """One iteration, its evaluation if one is due, its lines in the files."""
        plan, iteration = self.plan, self.iteration + 1
        state, metrics = self._learn()
        self._tell_losses()
        self._refuse_divergence(state)
        self.standing = self.standing._replace(state=state)
        self.iteration = iteration
        due = plan.eval_every and iteration % plan.eval_every == 0
        last = iteration == plan.iterations
        judged = self._evaluation() if due or last else None
        numbers = {name: self._by_seed(x) for name, x in jax.device_get(metrics).items()}
        rows = [
            self._row(seed) | {name: plain(x[k]) for name, x in numbers.items()}
            for k, seed in enumerate(plan.seed_numbers)
        ]
        if iteration % plan.log_every == 0 or judged or last:
            self._log(rows, judged)
            seconds = time.perf_counter() - began
            self.directory.append("timing.jsonl", [{"step": self.step, "seconds": seconds}])
        return rows

    def _learn(self) -> tuple[TrainState, dict[str, Any]]:
        """One iteration of the program; should it fail, what was learned before is kept."""
        try:
            return self.program.iterate(self.standing.state)
        except Exception:
            self._save()
            self.screen.close()
            self.screen.say(
                f"stopped by an error and saved at step {self.step}: once it is mended, go on with "
                f"`fp3o resume {self.directory.path}`"
            )
            raise

    def _losses(self) -> dict[str, int]:
        """What environments that count it have lost since the run began, in training."""
        now = self.program.env.failure_counts()
        return {name: self._lost_before.get(name, 0) + number for name, number in now.items()}

    def _tell_losses(self) -> None:
        """Say if workers had to be replaced since somebody was told."""
        told, self._lost_told = self._lost_told, self._losses()
        new = {name: number - told[name] for name, number in self._lost_told.items()}
        if replaced := new.get("env_restarts"):
            why = {kind: new[f"env_{kind}"] for kind in ("crashed", "hung", "garbage")}
            words = ", ".join(f"{number} {kind}" for kind, number in why.items() if number)
            self.screen.say(
                f"after step {self.step}, workers replaced: {replaced} ({words}); "
                f"{new['env_lost_steps']} steps of their episodes were lost"
            )

    def _refuse_divergence(self, state: TrainState) -> None:
        """A policy whose numbers are not finite plays no more: stop, with the last good state."""
        finite = [np.isfinite(self._by_seed(x)).all((1, 2)) for x in state.learner.actor]
        for seed, good in zip(self.plan.seed_numbers, np.all(finite, axis=0), strict=True):
            if not good:
                self._save()
                raise NonFiniteError(
                    f"the policy of seed {seed} is not finite after step {self.step}: training "
                    "diverged. Lower the learning rates or the clip; the state before is saved in "
                    f"{self.directory.path}"
                )

    def _row(self, seed: int) -> dict[str, Any]:
        return {"iteration": self.iteration, "step": self.step, "seed": seed} | self._losses()

    def _log(self, rows: list[dict[str, Any]], judged: list[dict[str, Any]] | None) -> None:
        for row, found in zip(rows, judged or [{}] * len(rows), strict=True):
            row.update(found)
        self.cursor = self.directory.append("metrics.jsonl", rows)
        for logger in self._loggers:
            logger.write(rows)

    def _evaluation(self) -> list[dict[str, Any]]:
        """Play with the policies as they are now, and remember the best."""
        plan, actor = self.plan, self.standing.state.learner.actor
        played = evaluate_params(
            self.program, plan, actor, plan.eval_episodes, (DURING, self.iteration)
        )
        returns = np.asarray(played.returns, np.float64)
        best, mean = self.standing.best, returns.mean(1)
        better = mean > best.score
        self.standing = self.standing._replace(
            best=Best(
                np.where(better, mean, best.score).astype(np.float64),
                np.where(better, self.step, best.step),
                tuple(
                    np.where(better[:, None, None], self._by_seed(new), old)
                    for new, old in zip(actor, best.rows, strict=True)
                ),
            )
        )
        names = [f"eval_{name}" for name in self.setup.spec.episode_metrics]
        outcomes = np.asarray(played.episode_metrics, np.float64).mean(1).tolist()
        return [
            {"eval_return": float(r.mean()), "eval_std": float(r.std()), "eval_episodes": r.size}
            | dict(zip(names, outcome, strict=True))
            for r, outcome in zip(returns, outcomes, strict=True)
        ]

    def _judge(self) -> None:
        """The final evaluation of the last and the best policies, the references, the report."""
        plan, best = self.plan, self.standing.best
        stacked = best.rows if plan.seeds > 1 else tuple(x[0] for x in best.rows)
        with self.screen.waiting(f"final evaluation: {plan.final_episodes} episodes a seed"):
            last = self._final(self.standing.state.learner.actor, LAST)
            absolute = self._final(stacked, BEST)
            scripted = baselines(plan.task, plan.variant, plan.final_episodes)
        content = {
            "format": 1,
            "steps": self.step,
            "seconds": self._seconds,
            "steps_per_second": self._rate,
            "evaluation": {"episodes": plan.final_episodes, "deterministic": True},
            "last": [
                {"seed": seed, **found} for seed, found in zip(plan.seed_numbers, last, strict=True)
            ],
            "best": [
                {"seed": seed, "step": int(step), **found}
                for seed, step, found in zip(plan.seed_numbers, best.step, absolute, strict=True)
            ],
            "references": scripted,
            **self._losses(),
        }
        self._write_policies({"last": content["last"], "best": content["best"]})
        self.directory.write_json("results.json", content)

    def _final(self, rows: Any, purpose: int) -> list[dict[str, Any]]:
        """The final evaluation of every seed's actor, in words and numbers for `results.json`."""
        played = evaluate_params(
            self.program, self.plan, rows, self.plan.final_episodes, (purpose,)
        )
        names = self.setup.spec.episode_metrics
        return [summary(EvalEpisodes(*own), names) for own in zip(*played, strict=True)]

    def _fresh(self) -> TrainCheckpoint:
        state = self.program.init(self.plan.seed)
        nowhere = np.full(self.plan.seeds, -math.inf)
        rows = tuple(self._by_seed(x) for x in state.learner.actor)
        return TrainCheckpoint(state, Best(nowhere, np.zeros(self.plan.seeds, np.int64), rows))

    def _restore(self) -> None:
        """Go back to the newest whole checkpoint, and forget what was written after it."""
        checkpoint = self.directory.newest()
        if checkpoint is not None:
            self.standing = from_arrays(self.standing, checkpoint.arrays)
            self.iteration, self.cursor = checkpoint.iteration, checkpoint.cursor
        if checkpoint is not None or self.directory.metrics.exists():
            self.directory.rewind("metrics.jsonl", self.cursor)
            rows = self.directory.metrics.read_bytes().splitlines()
            last = json.loads(rows[-1]) if rows else {}
            self._lost_before = {
                name: last[name] for name in FailureCounts().metrics() if name in last
            }

    def _save(self) -> None:
        arrays = to_arrays(self.standing)
        self.directory.save(
            Checkpoint(self.iteration, self.cursor, arrays), self.plan.keep_checkpoints
        )
        self._write_policies({})

    def note_resumption(self) -> None:
        """Keep in the record where and with what the run goes on, and its newest settings."""
        record, here = self.directory.read_json("config.json"), describe(settings_of(self.plan), 0)
        about = {name: here[name] for name in ("versions", "commit", "device", "created")}
        resumed = [*record.get("resumed", []), {"step": self.step, **about}]
        settings = {"settings": here["settings"], "resumed": resumed}
        self.directory.write_json("config.json", {**record, **settings})

    def _write_policies(self, judged: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """The newest and the best policy of every seed as artefacts that can be loaded alone."""
        state, best = self.standing
        record = self.directory.read_json("config.json")
        norm = jax.tree.map(self._by_seed, state.learner.value_norm)
        kinds = {"last": tuple(map(self._by_seed, state.learner.actor)), "best": best.rows}
        for k, seed in enumerate(self.plan.seed_numbers):
            for kind, rows in kinds.items():
                about = {
                    "algorithm": record["settings"]["algorithm"],
                    "sharing": record["settings"]["sharing"],
                    "seed": seed,
                    "step": self.step if kind == "last" else int(best.step[k]),
                    "evaluation": dict(judged[kind][k]) if judged else self._scored(kind, k),
                    **{name: record[name] for name in ("versions", "commit", "created")},
                }
                folder = self.directory.path / "policy" / f"seed-{seed}" / kind
                own, scale = jax.tree.map(lambda x, k=k: jnp.asarray(x[k]), (rows, norm))
                write_policy(folder, self.setup, own, about, scale)

    def _scored(self, kind: str, k: int) -> dict[str, float]:
        score = float(self.standing.best.score[k])
        return {"return": score} if kind == "best" and math.isfinite(score) else {}

    def _by_seed(self, x: Any) -> np.ndarray:
        """An array with an axis of seeds in front, also where there is one seed."""
        return np.asarray(x) if self.plan.seeds > 1 else np.asarray(x)[None]


def plain(x: Any) -> Any:
    """Numbers for JSON: the shortest text that is the same float32, null where not finite."""
    array = np.asarray(x)
    if array.ndim:
        return [plain(part) for part in array]
    if array.dtype.kind != "f":
        return array.item()
    return float(str(array[()])) if np.isfinite(array) else None
