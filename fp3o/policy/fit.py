"""Whether agents of a saved policy can start or play agents of another setup."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fp3o.errors import SettingError
from fp3o.learning.setup import Setup
from fp3o.policy.card import Card
from fp3o.policy.export import card_of
from fp3o.spec import ActionSpace, Discrete, EnvSpec, Mixed

NOT_COMPARED = {"spec", "sharing", "value", "provenance", "arrays", "frozen_agents"}
"""Fields of a card in which two policies may differ and still have the same kind of network."""

SETTINGS = {"network_class": "network"}
"""Setting of a field of the card, where the names differ."""


def require_fit(card: Card, setup: Setup, agents: Mapping[int, int], owner: str) -> None:
    """Raise unless agents of a policy fit those of the setup: networks, observations, actions.

    `agents` maps the agents of the setup to those of the policy.
    """
    if card.spec.obs_size != setup.spec.obs_size:
        raise SettingError(
            f"{owner} was trained with observations of size {card.spec.obs_size}, those of "
            f"{setup.spec.name} have size {setup.spec.obs_size}: only equal sizes fit"
        )
    if card.conv and card.spec.image != setup.spec.image:
        raise SettingError(
            f"{owner} was trained with images of shape {card.spec.image}, those of "
            f"{setup.spec.name} have shape {setup.spec.image}: only equal shapes fit"
        )
    for new, old in agents.items():
        if (theirs := _actions(card.spec, old)) != (own := _actions(setup.spec, new)):
            raise SettingError(
                f"agent {old} of {owner} has the actions {theirs}, agent {new} of "
                f"{setup.spec.name} has {own}: only equal actions fit"
            )
    ours = card_of(setup)
    for name in (x.name for x in fields(Card) if x.name not in NOT_COMPARED):
        theirs, own = (_setting(name, getattr(x, name)) for x in (card, ours))
        if theirs != own:
            setting = SETTINGS.get(name, name)
            raise SettingError(
                f"{owner} has a network with {setting}={theirs}, this run {setting}={own}: set "
                f"{setting}={theirs}"
            )


def _setting(name: str, value: Any) -> Any:
    """The value as it is given in settings."""
    return value or "mlp_gru" if name == "network_class" else value


def _actions(spec: EnvSpec, agent: int) -> str:
    """The actions of an agent and their place among the outputs of the network."""
    return " and ".join(_parts(spec.actions, agent))


def _parts(actions: ActionSpace, agent: int) -> list[str]:
    if isinstance(actions, Mixed):
        return [*_parts(actions.discrete, agent), *_parts(actions.box, agent)]
    if isinstance(actions, Discrete):
        return [f"Discrete {actions.sizes[agent]} (padded to {actions.widths})"]
    return [f"Box {actions.sizes[agent]} (padded to {actions.num_outputs})"]
