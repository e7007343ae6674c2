"""Images in observations, environments with turns, and ids of PettingZoo's registry."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")

from image_zoo import SIDE, Spot, Turns, turns
from small_runs import SMALL

import fp3o
from fp3o.envs.adapters.pettingzoo import PettingZoo
from fp3o.errors import SettingError

SPOT = "pettingzoo/image_zoo"


@pytest.mark.filterwarnings("ignore:.*running episodes:RuntimeWarning")
def test_images_are_learned_evaluated_and_rendered(tmp_path: Path) -> None:
    """An image, then the battery; the state has the images of both agents."""
    env = PettingZoo("image_zoo")
    assert env.spec.image == (SIDE, SIDE, 3) and env.spec.state_image == (SIDE, SIDE, 6)
    assert env.spec.obs_size == 3 * SIDE**2 + 1 and env.max_episode_steps == 4
    _, now = env.vectorise(1).reset(jax.random.key(0))
    assert now.obs[0, 0, -1] == 1
    np.testing.assert_allclose(np.unique(now.obs[0, 0, :-1]), [0, 0.2, 1], rtol=1e-6)
    run = fp3o.train(SPOT, out=tmp_path / "run", loggers=(), **SMALL)  # pyright: ignore
    assert all(np.isfinite(row["return"]) for row in run.evaluate(2)["policies"])
    run.render(tmp_path / "spot.gif", episodes=1, seconds=1)
    assert (tmp_path / "spot.gif").stat().st_size > 500


def test_turns() -> None:
    """PettingZoo makes parallel environments of those with turns, and says if it cannot."""
    assert PettingZoo(turns).spec.obs_sizes == PettingZoo(Spot).spec.obs_sizes
    with pytest.raises(SettingError, match=r"take turns, and PettingZoo cannot .* parallel"):
        _ = PettingZoo(Turns).spec


def test_ids_of_the_registry() -> None:
    registry = pytest.importorskip("pettingzoo.env_registry")
    assert registry
    with pytest.raises(SettingError, match="did you mean 'sisl/pursuit-v5'"):
        _ = PettingZoo("sisl/pursui-v5").spec
    with pytest.raises(SettingError, match="take turns, and PettingZoo cannot"):
        _ = PettingZoo("classic/tictactoe-v3").spec


def test_states_that_fail() -> None:
    """After the end the last state is kept; before it, the option is named."""

    class Forgetful(Spot):
        def state(self) -> np.ndarray:
            if self.time > (1 if self.max_cycles == 4 else 1e9) or not self.agents:
                raise AttributeError("gone")
            return np.full(3, self.time, np.float32)

    def last(**options: Any) -> Any:
        made: Any = PettingZoo(Forgetful, {"max_cycles": options.pop("cycles")}, **options)
        batch = made.vectorise(1)
        state, now = batch.reset(jax.random.key(0))
        for _ in range(2):
            state, now = batch.step(state, np.zeros((1, 2, 1), int))
        return now.final_state

    assert (last(cycles=2) == 1).all()
    assert last(cycles=4, state="observations").shape == (1, 2, 2 * (3 * SIDE**2 + 1))
    with pytest.raises(RuntimeError, match=r"state\(\) fails: AttributeError: gone.*state=obs"):
        last(cycles=4)
