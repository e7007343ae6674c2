"""The options `--players` and `--player-timeout` of `fp3o train` and `fp3o resume`."""

from typing import Any

from fp3o.errors import SettingError, nearest, printable

HERE, ON_RAY = "", "ray"


def read_players(options: Any) -> Any:
    """The players of `8`, processes of this machine, or of `ray:8`, actors of a Ray cluster."""
    text, timeout = options.players, options.player_timeout
    place, _, digits = text.rpartition(":")
    if place not in (HERE, ON_RAY):
        raise SettingError(f"unknown place of players {place!r}: {nearest(place, [ON_RAY])}")
    if not (digits.isascii() and digits.isdecimal()):
        shown = printable(repr(text), 60)
        raise SettingError(f"--players is a number such as 8, or ray:8 on a cluster; got {shown}")
    if place == ON_RAY and int(digits):
        from fp3o.experiments.framework.ray_players import RayPlayers

        return RayPlayers(int(digits), timeout, options.address)
    from fp3o.runs.players import player_source

    return player_source(int(digits), timeout)
