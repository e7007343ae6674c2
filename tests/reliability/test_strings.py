"""Option strings, import paths, task names, variants and sharings: read, or refused by name.

Texts are put together from pieces of all these grammars, odd characters and large numbers. The only
modules they name exist and do nothing when they are imported, so that a module that is imported
otherwise is noticed.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium  # noqa: F401 - loaded before imports are watched
import pettingzoo  # noqa: F401
from campaigns import Campaign
from hypothesis import given
from hypothesis import strategies as st

from fp3o.algorithms.table import algorithm_name, parse_algorithm
from fp3o.cli.options import parse_count
from fp3o.cli.train import fold_env_options
from fp3o.envs.registry import TASKS, get_task, parse_task
from fp3o.errors import UserError
from fp3o.imports import load
from fp3o.networks.network import network_class
from fp3o.options import parse_options, read_value, write_options
from fp3o.sharing.schemes import layer_groups, parse_sharing, resolve_groups

PIECES = (
    "fp3o", "happo", "a2po", "blocks", "rounds", "gated", "inner_clip", "split", "schedule",
    "full", "none", "auto", "partial", "default", "paper", "obsk", "reward", "env.x", "workers",
    "probe", "credit", "mpe", "simple_spread", "mamujoco", "HalfCheetah-6x1", "smac", "3m",
    "python", "pettingzoo", "gymnasium", "jumanji", "jaxmarl", "own", "CartPole-v1",
    "json", "json.loads", "json.decoder", "string", "ascii_letters", "no_such_module", "mlp_gru",
    ":", ":", ":", "/", "/", "=", "=", ",", ",", ".", "..", " ", "\n", "\t", "\0", "\x1b[31m",
    "(", ")", "[", "]", "{", "}", "'", '"', "\\", "#", "-", "_", "²", "٣", "é", "\u202e", "\ud800",
    "0", "1", "2", "-1", "0.5", "1e400", "nan", "inf", "null", "true", "9" * 30, "9" * 5000,
    "[0,0,1]", "[[0,0,0],[0,1,2],[0,0,0]]", '{"a":[0,1,2]}', '{"0":"a","1":"a","2":"b"}',
    "[" * 3000, "(" * 3000, "a" * 3000,
)  # fmt: skip

PATTERNS = (
    "{0}", "{0}:{1}={2}", "{0}:{1}={2},{3}={4}", "{0}:{1}", "{0}:{1}:{2}", "{0}/{1}:{2}", "{0}/{1}",
    "{0}/{1}:{2}={3}", "[{0},{1},{2}]", "{0},{1},{2}", "[[{0},0,0],[0,{1},0]]", "{{\"{0}\":[{1}]}}",
)  # fmt: skip

PIECE = st.one_of(st.sampled_from(PIECES), st.text(max_size=8))
JOINED = st.lists(PIECE, max_size=8).map("".join)
FILLED = st.builds(
    lambda pattern, parts: pattern.format(*parts),
    st.sampled_from(PATTERNS),
    st.lists(PIECE, min_size=5, max_size=5),
)
TEXT = st.one_of(JOINED, FILLED)

SPEC = TASKS["probe/credit"].spec()
SECONDS = 5
"""Most time for one text; making an environment of MuJoCo takes most."""


def read_options(text: str) -> None:
    name, options = parse_options(text)
    assert repr(parse_options(write_options(name, options))) == repr((name, options))


def read_algorithm(text: str) -> None:
    row = parse_algorithm(text)
    assert parse_algorithm(algorithm_name(row)) == row


def read_sharing(text: str) -> None:
    groups = resolve_groups(parse_sharing(text), SPEC)
    assert len(layer_groups(groups, SPEC.agent_types, 3)) == 3


def read_count(text: str) -> None:
    try:
        parse_count(text)
    except ValueError:  # the command line quotes it with the name of the option
        raise UserError from None


def make_task(text: str) -> None:
    task, variant = parse_task(text)
    assert task.spec(variant).num_agents >= 1


def make_variant(name: str) -> Callable[[str], None]:
    def make(text: str) -> None:
        assert get_task(name).env(text).spec.num_agents >= 1

    return make


READERS: dict[str, Callable[[str], Any]] = {
    "options": read_options,
    "values": read_value,
    "algorithms": read_algorithm,
    "sharings": read_sharing,
    "networks": network_class,
    "imports": load,
    "counts": read_count,
    "tasks": make_task,
    "adapted tasks": lambda text: make_task(f"python:{text}"),
    "PettingZoo": lambda text: make_task(f"pettingzoo:{text}"),
    "Gymnasium": lambda text: make_task(f"gymnasium:{text}"),
    "variants of probes": make_variant("probe/credit"),
    "variants of Gymnasium": make_variant("gymnasium/CartPole-v1"),
    "variants of MuJoCo": make_variant("mamujoco/HalfCheetah-6x1"),
    "arguments": lambda text: fold_env_options(["--env.x", text, f"--variant={text}"]),
}


def test_strings(campaign: Campaign) -> None:
    """Every reader reads every text or refuses it: quickly, in few words, importing nothing."""
    make_variant("mamujoco/HalfCheetah-6x1")("paper")  # imports MuJoCo
    make_task("gymnasium:CartPole-v1")

    @given(st.sampled_from([*READERS]), TEXT)
    def attack(reader: str, text: str) -> None:
        modules, started = {*sys.modules}, time.perf_counter()
        try:
            READERS[reader](text)
            result = "read"
        except UserError as error:
            result = "refused"
            assert len(str(error)) < 5000 + 4 * len(text), f"{len(str(error))} characters"
        assert time.perf_counter() - started < SECONDS
        imported = {name.partition(".")[0] for name in {*sys.modules} - modules}
        assert imported <= {"fp3o", "json", "encodings", "gymnasium", "pettingzoo"}, imported
        campaign.count(result)

    campaign.attack(attack, small=250, medium=1_500, whole=50_000)
