"""Trust: code that a file names is imported only if the caller allows it, by an argument."""

from fp3o.policy.schema import PolicyError, quote


class TrustError(PolicyError):
    """A file names code that would be imported and run, and the caller has not allowed it."""


def require_trust(trusted: bool, kind: str, name: str, owner: str = "this policy") -> None:
    """Raise unless the caller trusts the owner of a name that has to be imported.

    Every import of something that a policy, a run or a settings file names comes after this check.
    `trusted` is what the caller said, never something that was read from a file.
    """
    if not trusted:
        raise TrustError(
            f"{owner} names the {kind} {quote(name, 120)}: code that would be imported and run. If "
            "you trust where it comes from, repeat this with --trust, or trust=True in Python"
        )
