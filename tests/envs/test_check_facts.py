"""What `fp3o check` prints of an environment."""

import dataclasses
import json
from typing import Any

import numpy as np
from host_probe import HostProbe

from fp3o.envs.check import EnvReport, check_env
from fp3o.envs.check_facts import action_text, episode_lengths, fact_lines, play_facts, spec_facts
from fp3o.envs.random_play import RandomPlay, play_at_random
from fp3o.envs.toys.probe import PROBES
from fp3o.spec import Box, Discrete, EnvSpec, Mixed

CREDIT: Any = PROBES["credit"]


def changed(**fields: Any) -> RandomPlay:
    """A rollout of the probe with some arrays replaced by functions of them."""
    play = play_at_random(HostProbe(CREDIT, 2), 6, seed=0)
    new = {name: change(getattr(play.steps, name).copy()) for name, change in fields.items()}
    return play._replace(steps=play.steps._replace(**new))


def test_what_a_task_says() -> None:
    """Names, sizes, images, meanings of actions, limits."""
    spec = EnvSpec(
        "t/x", Discrete(((2,), (3,))), 27, 12, (0, 1), truncates=True, agents=("speaker", "mover"),
        obs_sizes=(27, 20), action_names=(("no", "yes"), ("left", "stay", "right")),
        image=(3, 3, 2), episode_metrics=("won",),
    )  # fmt: skip
    text = "\n".join(fact_lines(spec, spec_facts(spec, 40, True)))
    for words in (
        "2 of 2 types: speaker, mover", "27, 20 numbers per agent, of which an image of 3 x 3 x 2",
        "12 numbers per agent", "2, 3 choices: no/yes, left/stay/right",
        "at most 40 steps; a time limit truncates", "metrics      won", "rendering    yes",
    ):  # fmt: skip
        assert words in text
    assert "reward" not in text  # nothing was played


def test_what_was_seen() -> None:
    """Rewards, masks, deaths and lengths of random play."""
    usual = play_facts(CREDIT.spec, changed())
    assert usual["shared_reward"] and not usual["agents_die"] and not usual["truncations"]
    assert usual["unavailable_choices"] == 0 and usual["episode_lengths"] == [3, 3]
    assert usual["reward_range"][0] == 0

    def first_agent(x: np.ndarray, value: Any) -> np.ndarray:
        x[1:, :, 0] = value
        return x

    own = play_facts(CREDIT.spec, changed(reward=lambda x: first_agent(x, -5.0)))
    assert not own["shared_reward"] and own["reward_range"][0] == -5
    assert play_facts(CREDIT.spec, changed(alive=lambda x: first_agent(x, False)))["agents_die"]
    masked = play_facts(
        CREDIT.spec, changed(action_mask=lambda x: x & (np.arange(x.shape[-1]) > 0))
    )
    assert masked["unavailable_choices"] == 0.5
    assert episode_lengths(np.array([[False, True], [False, False], [True, True]])) == [1, 3, 2]


def test_kinds_of_actions() -> None:
    """Choices, vectors and both."""
    assert action_text(Discrete(((5, 10), (5, 10)))) == "5 x 10"
    assert action_text(Box((2, 3))) == "vectors of 2, 3"
    assert action_text(Mixed(Discrete(((4,),)), Box((2,)))) == "4 and vectors of 2"


def test_the_report() -> None:
    """As text and as JSON; an environment that fails still shows what it says about itself."""
    found = check_env(HostProbe(CREDIT, 2), steps=6)
    assert "the same for all agents" in str(found) and "never used" in str(found)
    content = json.loads(json.dumps(found.as_json()))
    assert content["ok"] and content["agents"] == ["agent_0", "agent_1", "agent_2"]
    assert content["steps/s"] > 0 and content["agents_die"] is False

    class Failing(HostProbe):
        def step(self, state: Any, action: Any) -> Any:
            raise ZeroDivisionError("no wheels")

    failed = check_env(Failing(CREDIT, 2), steps=6)
    assert not failed.ok and "agents       3" in str(failed) and "masks" not in str(failed)
    contradiction = dataclasses.replace(CREDIT.spec, obs_size=0)
    assert "agents" not in str(EnvReport(contradiction, []))
