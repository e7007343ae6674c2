"""Trust: code that a policy names is imported only if the user allows it."""

from fp3o.policy.schema import PolicyError


def require_trust(trusted: bool, what: str) -> None:
    """Refuse to import what a policy names unless its source is trusted."""
    if not trusted:
        raise PolicyError(
            f"this policy needs {what}, which is code that has to be imported. If you trust the "
            "source of the policy: Policy.load(folder, trust=True), or --trust"
        )
