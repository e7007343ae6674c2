"""A custom sharing scheme: the first layer per agent type, all other layers per agent.

python examples/custom_sharing.py
fp3o train mpe/simple_spread --sharing custom_sharing:shared_encoder
"""

import fp3o


@fp3o.register_sharing
def shared_encoder(agent_types, num_layers):
    """One encoder per agent type, followed by separate layers."""
    encoder = tuple(agent_types)
    separate = tuple(range(len(agent_types)))
    return [encoder] + [separate] * (num_layers - 1)


def main(steps=200_000):
    """Train with it; `fp3o list` shows it like the built-in schemes."""
    run = fp3o.train(
        "mpe/simple_spread", sharing="shared_encoder", algorithm="fp3o", seeds=1, steps=steps
    )
    print(run)


if __name__ == "__main__":
    main()
