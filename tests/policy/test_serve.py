"""A policy as an HTTP server."""

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from small_policies import NAMES, OBS_SIZES, saved_policy

from fp3o.cli.main import main
from fp3o.errors import SettingError
from fp3o.policy import Policy
from fp3o.policy.serve import PolicyServer

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolicyServer]:
    policy = saved_policy("partial", 4, "discrete", tmp_path_factory.mktemp("served") / "policy")
    with PolicyServer(policy, port=0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: PolicyServer, method: str, path: str, body: Any = None, headers: Any = JSON
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, content, headers)
    reply = connection.getresponse()
    found = reply.status, json.loads(reply.read())
    connection.close()
    return found


def observations() -> dict[str, list[float]]:
    random = np.random.default_rng(1)
    return {
        name: random.normal(size=size).astype(np.float32).tolist()
        for name, size in zip(NAMES, OBS_SIZES, strict=True)
    }


def test_acts_like_the_policy(server: PolicyServer) -> None:
    """Steps of an episode, in which the client sends the hidden state back; masks; samples."""
    policy: Policy = server.policy
    obs, hidden_state, state = observations(), None, None
    mask = {"tank_0": [False, True, False, False]}
    for _ in range(3):
        request = {"obs": obs, "hidden_state": state, "action_mask": mask}
        status, reply = ask(server, "POST", "/act", request)
        actions, hidden_state = policy.act(
            {name: np.array(x) for name, x in obs.items()}, hidden_state, mask
        )
        assert status == 200 and reply["actions"] == {k: v.tolist() for k, v in actions.items()}
        assert reply["actions"]["tank_0"] == 1
        state = reply["hidden_state"]
        np.testing.assert_allclose(state, hidden_state, atol=1e-6)
    sampled = [
        ask(server, "POST", "/act", {"obs": obs, "deterministic": False, "seed": seed})[1]
        for seed in (1, 1, 2, 3, 4)
    ]
    assert sampled[0] == sampled[1] and any(sampled[0] != other for other in sampled[2:])
    batch = {name: [x, x] for name, x in obs.items()}
    assert len(ask(server, "POST", "/act", {"obs": batch})[1]["actions"]["tank_1"]) == 2


def test_description(server: PolicyServer) -> None:
    """The agents, their sizes and actions."""
    status, facts = ask(server, "GET", "/", headers={})
    assert status == 200 and facts["task"] == "test/team"
    assert [agent["name"] for agent in facts["agents"]] == [*NAMES]


def test_invalid_requests(server: PolicyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status and a reason; the server answers the next request."""
    obs = observations()
    for body, message in [
        (b"{", "Expecting"),
        (b"[]", "must be an object"),
        (b"\xff", "codec"),
        ({}, "lacks obs"),
        ({"obs": obs, "obss": {}}, "unknown key 'obss'"),
        ({"obs": {"tank": obs["tank_0"]}}, "did you mean 'tank_"),
        ({"obs": {"tank_0": [1.0]}}, "'tank_0' has size 1"),
        ({"obs": {"tank_0": "text"}}, "list of numbers"),
        ({"obs": {"tank_0": [[1.0], [1.0, 2.0]]}}, "list of numbers"),
        ({"obs": obs, "hidden_state": [1.0]}, "hidden_state has shape"),
        ({"obs": {"tank_0": [[0.0] * 4] * 300}}, "up to 256"),
        (b'{"obs": {"tank_0": [NaN, 1, 1, 1]}}', "not a finite"),
        ({"obs": {"tank_0": [1e39, 1.0, 1.0, 1.0]}}, "not finite"),
    ]:
        status, reply = ask(server, "POST", "/act", body)
        assert status == 400 and message in reply["error"], reply
    assert ask(server, "GET", "/act", headers={})[0] == 404
    assert ask(server, "POST", "/", {})[0] == 404
    assert ask(server, "POST", "/act", {}, {"Content-Type": "text/plain"})[0] == 415
    assert ask(server, "POST", "/act", {}, {**JSON, "Content-Length": "many"})[0] == 411
    assert ask(server, "POST", "/act", {}, {**JSON, "Content-Length": "99999999"})[0] == 413
    assert ask(server, "GET", "/", headers={"Host": "evil.example:80"})[0] == 403
    assert ask(server, "POST", "/act", {"obs": obs})[0] == 200


def test_a_port_that_is_taken(server: PolicyServer, tmp_path_factory: Any) -> None:
    """One line on the command line."""
    with pytest.raises(SettingError, match=f"port {server.server_port}"):
        PolicyServer(server.policy, port=server.server_port)
    with pytest.raises(SettingError, match="port 99999"):
        PolicyServer(server.policy, port=99999)


def test_command(
    server: PolicyServer, capsys: pytest.CaptureFixture[str], tmp_path: Any, monkeypatch: Any
) -> None:
    """The command prints the address and serves."""
    served = []
    monkeypatch.setattr(PolicyServer, "serve_forever", lambda self: served.append(self))
    folder = server.policy.save(tmp_path / "policy")
    assert main(["serve", str(folder), "--port", "0"]) == 0
    assert capsys.readouterr().out.startswith("http://127.0.0.1:") and len(served) == 1
