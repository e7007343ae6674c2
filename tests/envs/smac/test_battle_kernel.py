"""The kernel of game loops (interpreted here) simulates what the loops one by one do."""

from typing import Any

import jax
import numpy as np
import pytest

from fp3o.envs.smac.actions import FIRST_ATTACK
from fp3o.envs.smac.env import smac_env
from fp3o.envs.smac.maps import MAPS
from fp3o.envs.smac.simulator import kernel_check, loop
from fp3o.envs.smac.simulator.battle import battle_on
from fp3o.envs.smac.simulator.kernel import has_kernel, simulate_in_kernel
from fp3o.envs.smac.simulator.kernel_check import battle_kernel_works
from fp3o.envs.vectorise import VmapEnv

WITHOUT_KERNEL = {
    "25m", "27m_vs_30m", "8m_vs_9m", "10m_vs_11m", "3s5z_vs_3s6z",  # more than 16 units
    "2s_vs_1sc", "6h_vs_8z", "corridor",  # walls
    "1c3s5z", "so_many_baneling", "bane_vs_bane", "2c_vs_64zg",  # lances, explosions
}  # fmt: skip


@pytest.mark.parametrize("name", ["3s5z", "5m_vs_6m"])
def test_battles_in_the_kernel_are_the_same(name: str) -> None:
    battle = battle_on(name)
    start = kernel_check._scattered(battle, np.random.default_rng(1))
    found, expected = (
        jax.jit(lambda *start, x=simulate: kernel_check._fight(x, battle, *start))(*start)
        for simulate in (simulate_in_kernel, loop.simulate_loops)
    )
    assert (expected.damage_taken > 0).any() and (expected.hp == 0).any()
    for field, value, other in zip(found._fields, found, expected, strict=True):
        if value is not None:
            np.testing.assert_allclose(value, other, rtol=1e-3, atol=1e-3, err_msg=field)


def test_the_kernel_can_be_lowered_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    battle = battle_on("3s5z")
    start = kernel_check._scattered(battle, np.random.default_rng(0))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    fight = jax.jit(lambda *start: kernel_check._fight(simulate_in_kernel, battle, *start))
    assert "triton" in fight.trace(*start).lower(lowering_platforms=("cuda",)).as_text()


def test_which_battles_have_a_kernel() -> None:
    assert {name for name in MAPS if not has_kernel(battle_on(name))} == WITHOUT_KERNEL
    assert not has_kernel(smac_env("terran_5_vs_5", "smac").battle)


def test_a_kernel_that_does_something_else_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    battle, check = battle_on("3m"), battle_kernel_works.__wrapped__
    traced = []
    jax.jit(jax.vmap(lambda x: traced.append(check(battle)) or x))(np.zeros(2))
    assert traced == [True]  # programs that use it are being traced when it is checked

    def wrong(*arguments: Any) -> Any:
        units = loop.simulate_loops(*arguments)
        return units._replace(windup=units.windup.at[-1].add(1))

    def broken(*_: Any) -> Any:
        raise RuntimeError("no such instruction")

    for kernel, reason in ((wrong, "only 83.3% of its numbers"), (broken, "no such instruction")):
        monkeypatch.setattr(kernel_check, "simulate_in_kernel", kernel)
        with pytest.warns(RuntimeWarning, match=f"3m is simulated without.*{reason}"):
            assert not check(battle)


def test_the_kernel_is_for_gpus_and_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    battle = battle_on("3m")
    monkeypatch.setattr(kernel_check, "battle_kernel_works", lambda _: True)
    assert not loop.use_battle_kernel(battle)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert loop.use_battle_kernel(battle)
    assert not loop.use_battle_kernel(battle_on("corridor"))
    with jax.default_device(jax.devices("cpu")[0]):
        assert not loop.use_battle_kernel(battle)
    monkeypatch.setenv("FP3O_KERNELS", "0")
    assert not loop.use_battle_kernel(battle)


def test_environments_of_several_seeds_step_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    env, attack = VmapEnv(smac_env("3m", "paper"), 3), np.full((3, 3, 1), FIRST_ATTACK)

    def step(state: Any, _: None) -> Any:
        state, now = env.step(state, attack)
        return state, (now.obs, now.reward)

    def play() -> Any:
        keys = jax.random.split(jax.random.key(0))
        episodes = lambda key: jax.lax.scan(step, env.reset(key)[0], None, length=40)[1]  # noqa: E731
        return jax.jit(jax.vmap(episodes))(keys)

    expected = play()
    assert (expected[1] > 0).any()
    monkeypatch.setattr(loop, "use_battle_kernel", lambda _: True)
    for one, other in zip(play(), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
