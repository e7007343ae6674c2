"""Images of battles: positions, dead units, health bars, attacks."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.rendering import rgb
from fp3o.envs.smac.env import SmacEnv, SmacState, smac_env
from fp3o.envs.smac.random_env import random_teams_env
from fp3o.envs.smac.render.battle import render_battle
from fp3o.envs.smac.render.drawing import (
    ALLY_COLOURS,
    ENEMY_COLOURS,
    HEALTH_COLOUR,
    SHIELD_COLOUR,
    SPARK_COLOUR,
    SUPERSAMPLING,
)
from fp3o.envs.smac.render.landscape import FOOTER, HEADER, HIGH_COLOUR, LOW_COLOUR, backdrop
from fp3o.envs.smac.render.legend import legend_entries
from fp3o.envs.smac.render.scene import BattleScene
from fp3o.envs.smac.render.sprites import UNIT_SHAPES
from fp3o.envs.smac.units import UNIT_TYPES

KEY = jax.random.key(0)


def initial(name: str) -> tuple[SmacEnv, SmacState]:
    env = smac_env(name, "smac")
    return env, env.reset(KEY)


def change(state: SmacState, unit: int, **values: Any) -> SmacState:
    """Change the state of one unit."""
    new = {name: np.array(getattr(state.units, name)) for name in values}
    for name, value in values.items():
        new[name][unit] = value
    return state._replace(
        units=state.units._replace(**{name: jnp.asarray(x) for name, x in new.items()})
    )


def like(image: np.ndarray, colour: str) -> np.ndarray:
    """Pixels of an image that nearly have a colour."""
    return np.all(np.abs(image.astype(int) - rgb(colour)) < 12, axis=-1)


def around(env: SmacEnv, image: np.ndarray, x: float, y: float, cells: float) -> np.ndarray:
    """A square of the image around a position."""
    page = backdrop(env.battle.map.terrain)
    column, row = (page.pixel(x, y) / SUPERSAMPLING).round().astype(int)
    half = round(cells * page.scale / SUPERSAMPLING)
    return image[row - half : row + half, column - half : column + half]


def scene(image: np.ndarray) -> np.ndarray:
    """The image without the strips above and below."""
    return image[HEADER:-FOOTER]


def test_every_unit_type_has_a_different_shape() -> None:
    assert {*UNIT_TYPES} <= {*UNIT_SHAPES}
    outlines = {
        b"".join(corners.tobytes() for _, corners in parts) for parts in UNIT_SHAPES.values()
    }
    assert len(outlines) == len(UNIT_SHAPES)


@pytest.mark.parametrize("name", ["3s5z", "bane_vs_bane"])
def test_an_image_shows_the_state(name: str) -> None:
    """Even sides, for videos; reproducible; time and caption are written on it."""
    env, state = initial(name)
    image = render_battle(env, state, "a caption")
    height, width, channels = image.shape
    assert image.dtype == np.uint8 and channels == 3 and height % 2 == width % 2 == 0
    assert 400 < height < 800 and 600 < width < 800
    np.testing.assert_array_equal(image, render_battle(env, state, "a caption"))
    plain = render_battle(env, state)
    assert (plain[-FOOTER:] != image[-FOOTER:]).any() and (plain[:-FOOTER] == image[:-FOOTER]).all()
    later = render_battle(env, state._replace(time=state.time + 1), "a caption")
    assert (later[:HEADER] != image[:HEADER]).any() and (scene(later) == scene(image)).all()


def test_units_stand_where_they_are_in_the_colour_of_their_side() -> None:
    env, state = initial("3m")
    state = change(change(state, 0, x=5.0, y=20.0), 4, x=12.0, y=10.5)
    image = render_battle(env, state)
    for unit, own, other in ((0, ALLY_COLOURS, ENEMY_COLOURS), (4, ENEMY_COLOURS, ALLY_COLOURS)):
        x, y = (float(part[unit]) for part in (state.units.x, state.units.y))
        spot = around(env, image, x, y, 0.375)
        assert like(spot, own.fill).mean() > 0.15 and not like(spot, other.fill).any()
        aside = around(env, image, x, y + 2.0, 0.375)
        assert not like(aside, own.fill).any()


def test_dead_units_are_marked_faintly() -> None:
    env, state = initial("3m")
    alive = render_battle(env, state)
    fallen = render_battle(env, change(state, 1, hp=0.0))
    nobody = render_battle(env, change(state, 1, hp=0.0, x=20.0, y=10.0))
    x, y = float(state.units.x[1]), float(state.units.y[1])
    alone, mark, empty = (around(env, image, x, y, 0.4) for image in (alive, fallen, nobody))
    assert like(alone, ALLY_COLOURS.fill).any() and not like(mark, ALLY_COLOURS.fill).any()
    assert not like(mark, HEALTH_COLOUR).any() and (mark != empty).any()
    assert (alive[:HEADER] != fallen[:HEADER]).any()  # the legend counts it


def test_bars_are_proportional_to_health() -> None:
    env, state = initial("2s3z")
    lengths = []
    for part in (1.0, 0.5, 0.25):
        hurt = change(state, 0, hp=80 * part, shield=80 * part, x=15.0, y=20.0)
        spot = around(env, render_battle(env, hurt), 15.0, 20.0, 0.9)
        lengths.append(
            [like(spot, colour).sum(1).max() for colour in (HEALTH_COLOUR, SHIELD_COLOUR)]
        )
    whole, half, quarter = np.array(lengths)
    assert (np.abs(half - whole / 2) <= 2).all() and (np.abs(quarter - whole / 4) <= 2).all()
    assert (quarter > 0).all()


def test_in_large_battles_only_damaged_units_have_bars() -> None:
    env, state = initial("bane_vs_bane")
    count = lambda state: like(scene(render_battle(env, state)), HEALTH_COLOUR).sum()  # noqa: E731
    assert count(state) == 0 < count(change(state, 30, hp=20.0))


def test_attacks_are_drawn() -> None:
    """A spark at a hit, a dot for a missile, a disc for an explosion."""
    env, state = initial("3m")
    shot = change(state, 0, target=1, cooldown=13.0, x=20.0)
    shot = change(shot, 4, since_hit=0.0)
    sparks = lambda env, state: like(scene(render_battle(env, state)), SPARK_COLOUR).sum()  # noqa: E731
    assert sparks(env, state) == 0 < sparks(env, shot)
    assert sparks(env, change(shot, 4, since_hit=99.0)) == 0  # another unit was hit

    env, state = initial("3s5z")
    assert sparks(env, state) == 0 < sparks(env, change(state, 0, flight=3, last_target=2))

    env, state = initial("bane_vs_bane")
    x, y = float(state.units.x[0]), float(state.units.y[0])
    old, new = (
        around(env, render_battle(env, change(state, 0, hp=0.0, since_hit=ago)), x - 1.8, y, 0.3)
        for ago in (99.0, 2.0)
    )
    assert (new.astype(int).sum(-1) < old.astype(int).sum(-1) - 20).mean() > 0.8


def test_terrains_differ() -> None:
    """High ground is lighter than low ground."""
    field, bowl, plateau = (
        np.asarray(backdrop(name).image) for name in ("field", "bowl", "plateau")
    )
    assert field.shape != bowl.shape and field.shape != plateau.shape
    for page, has_high in ((field, False), (bowl, False), (plateau, True)):
        assert like(page, LOW_COLOUR).any() and like(page, HIGH_COLOUR).any() == has_high


def test_healers_are_connected_with_their_patients() -> None:
    """By a line, while they heal them."""
    env = random_teams_env("terran_2_vs_1", "smac")
    units = env.battle.with_types(jnp.array([0, 2, 1])).units_at(
        jnp.array([16.0, 13.0, 28.0]), jnp.array([16.0, 16.0, 28.0])
    )
    state = env.reset(KEY)._replace(units=units._replace(hp=units.hp.at[0].set(20.0)))
    idle, busy = (
        around(env, render_battle(env, moment), 14.75, 16.0, 0.4)
        for moment in (state, change(state, 1, target=0))
    )
    assert like(busy, HEALTH_COLOUR).any() and not like(idle, HEALTH_COLOUR).any()


@pytest.mark.parametrize(
    ("teams", "label"), [("terran_1_vs_2", "marauder 1/1"), ("terran_9_vs_9", " 3/3")]
)
def test_the_legend_has_names_where_there_is_room(teams: str, label: str) -> None:
    """Without names, icons and counts are left."""
    env, page = random_teams_env(teams, "smac"), backdrop("flat")
    count = env.battle.num_units
    battle = env.battle.with_types(np.arange(count) % 3)
    units = jax.device_get(battle.units_at(jnp.full(count, 16.0), jnp.full(count, 16.0)))
    entries = [*legend_entries(BattleScene(env, units, np.zeros(1), page, page.image))]
    assert label in [text for *_, text in entries]
    columns = [column for column, *_ in entries]
    assert columns == sorted(columns)
