"""Pictures of battles: what stands where, who lives, who is hurt, who hits whom."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.smac.env import SmacEnv, State, smac_env
from fp3o.envs.smac.render.battle import picture
from fp3o.envs.smac.render.brush import FLAME, HEALTH, OURS, SHIELD, SMOOTH, THEIRS, rgb
from fp3o.envs.smac.render.landscape import FOOT, HEAD, HIGH, LOW, stage
from fp3o.envs.smac.render.shapes import SHAPES
from fp3o.envs.smac.units import UNITS

KEY = jax.random.key(0)


def begin(name: str) -> tuple[SmacEnv, State]:
    game = smac_env(name, "smac")
    return game, game.reset(KEY)


def change(state: State, unit: int, **values: Any) -> State:
    """The same, but for some numbers of one unit."""
    new = {name: np.array(getattr(state.units, name)) for name in values}
    for name, value in values.items():
        new[name][unit] = value
    return state._replace(
        units=state.units._replace(**{name: jnp.asarray(x) for name, x in new.items()})
    )


def like(image: np.ndarray, colour: str) -> np.ndarray:
    """Where an image has a colour, nearly."""
    return (np.abs(image.astype(int) - rgb(colour)) < 12).all(-1)


def around(game: SmacEnv, image: np.ndarray, x: float, y: float, cells: float) -> np.ndarray:
    """A square of the image with a place in the middle."""
    page = stage(game.battle.map.ground)
    column, row = (page.at(x, y) / SMOOTH).round().astype(int)
    half = round(cells * page.scale / SMOOTH)
    return image[row - half : row + half, column - half : column + half]


def scene(image: np.ndarray) -> np.ndarray:
    """Without the strips above and below."""
    return image[HEAD:-FOOT]


def test_every_kind_has_a_shape_of_its_own() -> None:
    assert {*UNITS} <= {*SHAPES}
    outlines = {b"".join(corners.tobytes() for _, corners in parts) for parts in SHAPES.values()}
    assert len(outlines) == len(SHAPES)


@pytest.mark.parametrize("name", ["3s5z", "bane_vs_bane"])
def test_a_picture_is_an_image_of_the_state(name: str) -> None:
    """Even sides, for films; the same each time; time and caption are written on it."""
    game, state = begin(name)
    image = picture(game, state, "a caption")
    height, width, channels = image.shape
    assert image.dtype == np.uint8 and channels == 3 and height % 2 == width % 2 == 0
    assert 400 < height < 800 and 600 < width < 800
    np.testing.assert_array_equal(image, picture(game, state, "a caption"))
    plain = picture(game, state)
    assert (plain[-FOOT:] != image[-FOOT:]).any() and (plain[:-FOOT] == image[:-FOOT]).all()
    later = picture(game, state._replace(time=state.time + 1), "a caption")
    assert (later[:HEAD] != image[:HEAD]).any() and (scene(later) == scene(image)).all()


def test_units_stand_where_they_are_in_the_colour_of_their_side() -> None:
    game, state = begin("3m")
    state = change(change(state, 0, x=5.0, y=20.0), 4, x=12.0, y=10.5)
    image = picture(game, state)
    for unit, own, other in ((0, OURS, THEIRS), (4, THEIRS, OURS)):
        x, y = (float(part[unit]) for part in (state.units.x, state.units.y))
        spot = around(game, image, x, y, 0.375)
        assert like(spot, own.fill).mean() > 0.15 and not like(spot, other.fill).any()
        aside = around(game, image, x, y + 2.0, 0.375)
        assert not like(aside, own.fill).any()


def test_the_dead_leave_only_a_faint_mark() -> None:
    game, state = begin("3m")
    alive = picture(game, state)
    fallen = picture(game, change(state, 1, hp=0.0))
    nobody = picture(game, change(state, 1, hp=0.0, x=20.0, y=10.0))
    x, y = float(state.units.x[1]), float(state.units.y[1])
    alone, mark, empty = (around(game, image, x, y, 0.4) for image in (alive, fallen, nobody))
    assert like(alone, OURS.fill).any() and not like(mark, OURS.fill).any()
    assert not like(mark, HEALTH).any() and (mark != empty).any()
    assert (alive[:HEAD] != fallen[:HEAD]).any()  # it is also counted


def test_bars_are_as_long_as_what_is_left() -> None:
    game, state = begin("2s3z")
    lengths = []
    for part in (1.0, 0.5, 0.25):
        hurt = change(state, 0, hp=80 * part, shield=80 * part, x=15.0, y=20.0)
        spot = around(game, picture(game, hurt), 15.0, 20.0, 0.9)
        lengths.append([like(spot, colour).sum(1).max() for colour in (HEALTH, SHIELD)])
    whole, half, quarter = np.array(lengths)
    assert (np.abs(half - whole / 2) <= 2).all() and (np.abs(quarter - whole / 4) <= 2).all()
    assert (quarter > 0).all()


def test_in_a_crowd_only_the_hurt_have_bars() -> None:
    game, state = begin("bane_vs_bane")
    count = lambda state: like(scene(picture(game, state)), HEALTH).sum()  # noqa: E731
    assert count(state) == 0 < count(change(state, 30, hp=20.0))


def test_attacks_are_seen() -> None:
    """A spark where a marine has just hit, a dot where a missile is, a disc where one burst."""
    game, state = begin("3m")
    shot = change(state, 0, target=1, cooldown=13.0, x=20.0)
    shot = change(shot, 4, unhurt=0.0)
    sparks = lambda game, state: like(scene(picture(game, state)), FLAME).sum()  # noqa: E731
    assert sparks(game, state) == 0 < sparks(game, shot)
    assert sparks(game, change(shot, 4, unhurt=99.0)) == 0  # somebody else was hit

    game, state = begin("3s5z")
    assert sparks(game, state) == 0 < sparks(game, change(state, 0, flight=3, prey=2))

    game, state = begin("bane_vs_bane")
    x, y = float(state.units.x[0]), float(state.units.y[0])
    old, new = (
        around(game, picture(game, change(state, 0, hp=0.0, unhurt=ago)), x - 1.8, y, 0.3)
        for ago in (99.0, 2.0)
    )
    assert (new.astype(int).sum(-1) < old.astype(int).sum(-1) - 20).mean() > 0.8


def test_grounds_differ() -> None:
    """High ground, reached over ramps, is lighter than the ground below it."""
    field, bowl, plateau = (np.asarray(stage(name).paper) for name in ("field", "bowl", "plateau"))
    assert field.shape != bowl.shape and field.shape != plateau.shape
    for page, has_high in ((field, False), (bowl, False), (plateau, True)):
        assert like(page, LOW).any() and like(page, HIGH).any() == has_high
