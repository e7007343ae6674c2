"""Schedules of hyperparameters: formulas, checks and messages."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import optax
import pytest

from fp3o.errors import SettingError
from fp3o.learning.check_config import check_numbers
from fp3o.learning.config import Hyperparameters
from fp3o.learning.value_schedules import ValueSchedule, read_schedule

TOTAL = 40
"""Iterations."""


def cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(share, 1.0))) / 2


CLOSED_FORMS = {
    "5e-4:0": lambda p: 5e-4 * (1 - p),
    "0.1:0.4": lambda p: 0.1 + 0.3 * p,
    "linear:start=1,end=0.5,until=0.25": lambda p: 1 - 0.5 * min(4 * p, 1),
    "cosine:start=5e-4,end=1e-5": lambda p: cosine(5e-4, 1e-5, p),
    "cosine:start=0,end=1,until=0.5": lambda p: cosine(0, 1, 2 * p),
    "warmup:peak=2,fraction=0.25": lambda p: min(8 * p, 2),
    "warmup:peak=2,fraction=0.5,start=1,end=0": lambda p: 1 + 2 * p if p < 0.5 else 4 * (1 - p),
    "warmup:peak=2,fraction=0.5,end=0,decay=cosine": lambda p: (
        4 * p if p < 0.5 else cosine(2, 0, 2 * p - 1)
    ),
    "piecewise:0=5e-4,0.5=1e-4,0.75=0": lambda p: 5e-4 if p < 0.5 else 1e-4 if p < 0.75 else 0,
    "constant:value=0.3": lambda p: 0.3,
}


@pytest.mark.parametrize("text", CLOSED_FORMS)
def test_closed_forms(text: str) -> None:
    """In every iteration, and the float itself is the first value."""
    schedule, shares = ValueSchedule(text), np.arange(TOTAL) / TOTAL
    found, wanted = [schedule.at(p) for p in shares], [CLOSED_FORMS[text](p) for p in shares]
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-7)
    assert float(schedule) == pytest.approx(wanted[0])
    assert min(schedule.values) <= min(found) and max(found) <= max(schedule.values)


def test_they_are_optax_schedules_over_the_iterations() -> None:
    """A share of training is a count of iterations over their number."""
    pairs: dict[str, Any] = {
        "1:0.1": optax.linear_schedule(1, 0.1, TOTAL),
        "cosine:start=1,end=0": optax.cosine_decay_schedule(1, TOTAL),
        "warmup:peak=1,fraction=0.25,end=0.1,decay=cosine": (
            optax.warmup_cosine_decay_schedule(0, 1, TOTAL // 4, TOTAL, 0.1)
        ),
        "piecewise:0=1,0.5=0.1": optax.piecewise_constant_schedule(1, {TOTAL // 2: 0.1}),
    }
    for text, reference in pairs.items():
        for count in range(TOTAL):
            value = ValueSchedule(text).at(count / TOTAL)
            assert value == pytest.approx(float(reference(count)), rel=1e-5, abs=1e-7)


def test_jaxmarl_anneals_the_same() -> None:
    """`LR * (1 - update / NUM_UPDATES)`, constant within an update."""
    schedule = ValueSchedule("2.5e-4:0")
    for update in range(TOTAL):
        frac = 1.0 - update / TOTAL
        assert schedule.at(update / TOTAL) == pytest.approx(2.5e-4 * frac, rel=1e-5)


def test_hyperparameters_at_a_share_of_training() -> None:
    """Schedules become numbers, numbers stay the same objects; copies and pickles are equal."""
    hparams = Hyperparameters(actor_lr=ValueSchedule("1:0"), value_clip=ValueSchedule("1:3"))
    now = hparams.at(0.5)
    assert (now.actor_lr, now.value_clip, now.critic_lr) == (0.5, 2.0, 5e-4)
    assert type(now.actor_lr) is float
    assert hparams.as_arrays().actor_lr == 1.0
    schedule = hparams.actor_lr
    assert copy.deepcopy(schedule) == pickle.loads(pickle.dumps(schedule)) == schedule
    assert schedule not in (1.0, ValueSchedule("1:0.0"))
    assert hash(hparams) != hash(Hyperparameters())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("high", "actor_lr must be a number, got 'high'; a schedule is written as NUMBER:NUMBER"),
        ("5e-4:low", "actor_lr: '5e-4:low' is no schedule"),
        ("cosin:start=1,end=0", "unknown schedule 'cosin': did you mean 'cosine'"),
        ("cosine:", "has no options"),
        ("cosine:strat=1,end=0", "has no option 'strat': did you mean 'start'"),
        ("cosine:start=1", "needs the option end"),
        ("linear:start=a,end=1", "start in .* must be a number, got 'a'"),
        ("linear:start=1,end=0,until=0", "until in .* must be above 0 and at most 1, got 0"),
        ("warmup:peak=1,fraction=1", "fraction in .* must be between 0 and 1, got 1"),
        ("warmup:peak=1,fraction=0.1,decay=cosin", "unknown decay 'cosin' of warmup: did you mean"),
        ("piecewise:0.5=1", "the shares from 0 on"),
        ("piecewise:0=1,0.5=2,0.25=3", "increasing"),
        ("piecewise:0=1,1=2", "below 1"),
        ("piecewise:start=1", "write shares of training"),
        ("piecewise:0=1,0=2", "given twice"),
        (f"1:{'9' * 400}", "is no schedule"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        read_schedule("actor_lr", text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("clip_range", "0.2:0", "clip_range must be above 0, got 0.0 in its schedule '0.2:0'"),
        ("gamma", "0.9:1.01", "gamma must be between 0 and 1, got 1.01"),
        ("entropy_coef", "piecewise:0=0,0.5=-1", "entropy_coef must be at least 0, got -1.0"),
        ("huber_delta", "warmup:peak=1,fraction=0.5", "huber_delta must be above 0, got 0.0"),
        ("actor_lr", "1:inf", "actor_lr must be at least 0, got inf"),
        ("max_grad_norm", "1:1e-50", "as a number of 32 bits"),
    ],
)
def test_every_value_is_checked_like_a_constant(name: str, text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        check_numbers(Hyperparameters(**{name: ValueSchedule(text)}))
