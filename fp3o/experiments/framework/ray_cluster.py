"""Connecting to a Ray cluster, or starting one that only this user of this machine can reach.

Whoever can talk to a Ray cluster can run code on it. A cluster started here listens on the loopback
interface alone and asks for a token, which is new for every cluster and is in the environment of
its processes only. A cluster that the user brings is as open as its owner has made it.
"""

import os
import secrets
from importlib import import_module
from typing import Any

from fp3o.errors import MissingExtraError, SettingError, UserError, printable
from fp3o.runs.progress import Display

AUTH_MODE, AUTH_TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"
"""Environment variables of Ray: `token` or `disabled`, and the token itself."""

OPEN_CLUSTER = (
    "this Ray cluster asks for no token: whoever reaches its ports can run code on all of its "
    "nodes. RAY_AUTH_MODE=token on every node turns tokens on (docs/experiments.md)"
)

NOT_LOOPBACK = (
    "this version of Ray listens on {address}, not on the loopback interface alone: only its token "
    "keeps others out"
)


class ClusterError(UserError, RuntimeError):
    """A Ray cluster that cannot be reached or started."""


def import_ray() -> Any:
    """The optional package."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise MissingExtraError("ray", "ray") from error


def connect(ray: Any, address: str | None, display: Display) -> None:
    """Connect to the cluster at an address, or to the one Ray finds, or start one here."""
    if address and address.startswith("ray://"):
        raise SettingError(
            f"{address} is a Ray client address: results would stay on the proxy's machine. Run "
            "this on a node of the cluster, with its address as `ray status` shows it"
        )
    try:
        ray.init(address=address or "auto", ignore_reinit_error=True, log_to_driver=False)
    except (OSError, RuntimeError, ray.exceptions.RayError) as error:
        if address or not isinstance(error, ConnectionError):
            reason = printable(str(error).strip().split("\n")[0], 300)
            raise ClusterError(f"no connection to a Ray cluster: {reason}") from error
        _start_local_cluster(ray, display)
        return
    if os.environ.get(AUTH_MODE, "").lower() != "token":
        display.say(OPEN_CLUSTER)


def _start_local_cluster(ray: Any, display: Display) -> None:
    """Start a cluster on the loopback interface, with a token unless the user has opted out."""
    if os.environ.get(AUTH_MODE, "token").lower() == "token":
        # Ray would keep its own token in the home directory, where everybody can read it.
        os.environ.setdefault(AUTH_TOKEN, secrets.token_hex(32))
    # Without it Ray replaces every loopback address by one that other machines can reach.
    constants: Any = import_module("ray._private.ray_constants")
    constants.ENABLE_RAY_CLUSTER = False
    ray.init(
        address="local", include_dashboard=False, _node_ip_address="127.0.0.1",
        log_to_driver=False, logging_level="ERROR",
    )  # fmt: skip
    node = ray.nodes()[0]["NodeManagerAddress"]
    if not (node.startswith("127.") or node == "::1"):
        display.say(NOT_LOOPBACK.format(address=printable(node)))
    if os.environ.get(AUTH_MODE, "").lower() != "token":
        display.say(OPEN_CLUSTER)
