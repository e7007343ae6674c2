"""A policy as an HTTP server: JSON observations in, JSON actions out.

| request     | answer                                                                   |
|-------------|--------------------------------------------------------------------------|
| `GET /`     | task, agents, sizes and meanings of actions                              |
| `POST /act` | `actions` by agent name, and `hidden_state`, which the client sends back |

The server keeps nothing between requests. It has no passwords and no encryption: it is meant for
programs on the same machine, or behind a server that has both.
"""

from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

import numpy as np

from fp3o.errors import SettingError, UserError
from fp3o.policy.describe import policy_facts
from fp3o.policy.policy import Policy
from fp3o.policy.schema import (
    NumberRange,
    Optional,
    OrNull,
    check_value,
    dump_json,
    parse_json,
    to_plain,
)

MAX_BYTES, MAX_ROWS = 2**22, 256
"""Limits of a request: 4 MiB, and 256 rows of observations at once."""

ACT_REQUEST = {
    "obs": dict,
    "hidden_state": Optional(OrNull(list), None),
    "action_mask": Optional(OrNull(dict), None),
    "deterministic": Optional(bool, True),
    "seed": Optional(OrNull(NumberRange(0, 2**63)), None),
}


class PolicyServer(ThreadingHTTPServer):
    """Serves a policy; `serve_forever()` answers requests until `shutdown()`."""

    daemon_threads = True

    def __init__(self, policy: Policy, host: str = "127.0.0.1", port: int = 8000):
        self.policy = policy
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SettingError(f"cannot serve on {host} port {port}: {reason}") from error

    @property
    def local(self) -> bool:
        """Whether only programs on this machine reach the server."""
        return ip_address(str(self.server_address[0])).is_loopback

    def act(self, document: Any) -> dict[str, Any]:
        """The answer to a request."""
        request = check_value(document, ACT_REQUEST, "request")
        state, obs = request["hidden_state"], _arrays(request["obs"], "obs")
        if any(x.ndim > 2 or (x.ndim == 2 and len(x) > MAX_ROWS) for x in obs.values()):
            raise SettingError(f"give one observation per agent, or a list of up to {MAX_ROWS}")
        actions, after = self.policy.act(
            obs,
            None if state is None else _array(state, "hidden_state"),
            request["action_mask"] and _arrays(request["action_mask"], "action_mask"),
            request["deterministic"],
            None if request["seed"] is None else np.random.default_rng(request["seed"]),
        )
        return to_plain({"actions": actions, "hidden_state": after})


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: PolicyServer
    timeout = 30
    server_version, sys_version = "fp3o", ""

    def do_GET(self) -> None:
        """The description of the policy."""
        if not self._is_refused("/"):
            self._answer(HTTPStatus.OK, to_plain(policy_facts(self.server.policy.card)))

    def do_POST(self) -> None:
        """One step."""
        if self._is_refused("/act"):
            return None
        # A web page of another origin cannot send this type without asking first.
        if self.headers.get_content_type() != "application/json":
            return self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send application/json")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            return self._refuse(HTTPStatus.LENGTH_REQUIRED, "send the Content-Length")
        if len(length) > 9 or int(length) > MAX_BYTES:
            reason = f"a request has at most {MAX_BYTES} bytes"
            return self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)
        try:
            answer = self.server.act(parse_json(self.rfile.read(int(length))))
        except (UserError, ValueError) as error:  # a ValueError: not JSON
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        return self._answer(HTTPStatus.OK, answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing about requests."""

    def _is_refused(self, path: str) -> bool:
        """Answer requests for other paths, or by a foreign name for this machine, with an error."""
        name = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if self.server.local and name not in ("127.0.0.1", "localhost", "[::1]"):
            self._refuse(HTTPStatus.FORBIDDEN, "this server answers requests to localhost only")
        elif self.path != path:
            self._refuse(HTTPStatus.NOT_FOUND, "there is GET / and POST /act")
        else:
            return False
        return True

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._answer(status, {"error": reason})

    def _answer(self, status: HTTPStatus, document: Any) -> None:
        content = dump_json(document)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _arrays(entries: Mapping[str, Any], name: str) -> dict[str, np.ndarray]:
    return {agent: _array(entry, f"{name} of an agent") for agent, entry in entries.items()}


def _array(entry: Any, name: str) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # infinite numbers are refused by the policy
            return np.asarray(entry, np.float32)
    except (TypeError, ValueError) as error:
        raise SettingError(f"{name} must be a list of numbers of one shape") from error
