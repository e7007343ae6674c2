"""Trust check: code that a policy names is imported only if the user allows it."""

from fp3o.policy.schema import PolicyError


def require_trust(trusted: bool, what: str) -> None:
    """Raise unless the source of a policy, which names code to import, is trusted."""
    if not trusted:
        raise PolicyError(
            f"this policy needs {what}, which is code that has to be imported. If you trust the "
            "source of the policy: Policy.load(folder, trust=True), or --trust"
        )
