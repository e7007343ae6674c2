"""What a policy expects and returns, in words and as JSON: agents, sizes, meanings of actions."""

from typing import Any

from fp3o.errors import printable
from fp3o.policy.actions import own_choices, own_dimensions
from fp3o.policy.card import Card
from fp3o.spec import Mixed


def policy_facts(card: Card) -> dict[str, Any]:
    """Task, agents and sizes of a policy: the metadata of exported files, and what servers show."""
    spec = card.spec
    return {
        "task": spec.name,
        "obs_size": spec.obs_size,
        "num_outputs": card.num_outputs,
        "hidden_size": card.gru_size,
        "agents": [
            {
                "name": name,
                "obs_size": spec.agent_obs_sizes[i],
                "choices": list(own_choices(spec.actions, i)),
                "dimensions": own_dimensions(spec.actions, i),
                "action_names": list(spec.action_names[i]) if spec.action_names else [],
            }
            for i, name in enumerate(spec.agent_names)
        ],
        "step": card.provenance.get("step"),
    }


def policy_text(card: Card) -> str:
    """A policy in a few lines: the task, then one line per agent."""
    facts = policy_facts(card)
    network = card.network_class or "x".join(map(str, card.hidden))
    gru = f", GRU of {card.gru_size}" if card.gru_size else ""
    step = facts["step"]
    lines = [
        f"policy for {facts['task']}"
        + (f", step {step:,}" if isinstance(step, int) else "")
        + f": {card.num_parameters:,} parameters, network {network}{gru}"
    ]
    width = max(len(agent["name"]) for agent in facts["agents"])
    for agent in facts["agents"]:
        lines.append(
            f"  {agent['name']:<{width}}  observation of {agent['obs_size']}, {_action_text(agent)}"
        )
    if isinstance(card.spec.actions, Mixed):
        lines.append("  in arrays, a row of actions is the choices, then the vector")
    return "\n".join(printable(line, 400) for line in lines)


def _action_text(agent: dict[str, Any]) -> str:
    """`choice of 3 (left, stay, right)`, `vector of 2`."""
    parts = []
    if agent["choices"]:
        parts.append("choice of " + " x ".join(map(str, agent["choices"])))
    if agent["dimensions"] or not parts:
        parts.append(f"vector of {agent['dimensions']}")
    names = f" ({', '.join(agent['action_names'])})" if agent["action_names"] else ""
    return " and ".join(parts) + names
