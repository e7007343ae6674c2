"""Tables of the paper's MuJoCo tasks: observations, states, joints of the agents, neighbours.

An observation is a list of symbols: `q3` is qpos[3], `v3` qvel[3], `w3` qvel[3] clipped to 10,
`sin0` the sine of qpos[0], `dx` the offset from target to fingertip, `0` zero.
"""


def symbols(letter: str, start: int, stop: int) -> str:
    """`q2 q3 q4` and so on."""
    return " ".join(f"{letter}{i}" for i in range(start, stop))


ANT_ROOT = f"{symbols('q', 0, 7)} {symbols('v', 0, 6)}"
HOPPER_ROOT = "q2 q1 w1 w2 w1"
CHEETAH_ROOT = "q2 q1 v0 v2 v1"
LITERAL = {
    "Ant-2x4": [
        f"q8 v7 q10 v9 q7 v6 q9 v8 q11 q13 q12 q14 {ANT_ROOT}",
        f"q12 v11 q14 v13 q11 v10 q13 v12 q7 q9 q8 q10 {ANT_ROOT}",
    ],
    "Walker2d-2x3": ["q5 v5 q4 v4 q3 v3 q6 q7 q8", "q8 v8 q7 v7 q6 v6 q3 q4 q5"],
    "Hopper-3x1": [
        f"q3 w3 q4 q5 {HOPPER_ROOT}",
        f"q4 w4 q5 q3 {HOPPER_ROOT}",
        f"q5 w5 q4 q3 {HOPPER_ROOT}",
    ],
    "HalfCheetah-6x1": [
        f"q5 v5 q4 q3 q6 q7 q8 {CHEETAH_ROOT}",
        f"q4 v4 q5 q3 q6 q7 q8 {CHEETAH_ROOT}",
        f"q3 v3 q4 q6 q5 q7 q8 {CHEETAH_ROOT}",
        f"q8 v8 q7 q6 q3 q4 q5 {CHEETAH_ROOT}",
        f"q7 v7 q8 q6 q3 q4 q5 {CHEETAH_ROOT}",
        f"q6 v6 q3 q7 q4 q8 q5 {CHEETAH_ROOT}",
    ],
    "Reacher-2x1": [
        "sin0 cos0 v0 sin1 cos1 q2 q3",
        "sin1 cos1 v1 dx dy dz sin0 cos0 q2 q3",
    ],
    "ManyagentSwimmer-8x2": [
        "q3 v3 q4 v4 q5 q6 q7 q8 q9",
        "q5 v5 q6 v6 q4 q7 q3 q8 q9 q10 q11",
        "q7 v7 q8 v8 q6 q9 q5 q10 q4 q11 q3 q12 q13",
        "q9 v9 q10 v10 q8 q11 q7 q12 q13 q6 q14 q5 q4 q15",
    ],
}
"""Observations of the paper's agents; of the swimmer, the first four agents."""
STATES = {
    "Reacher": "cos0 cos1 sin0 sin1 q2 q3 v0 v1 dx dy dz",
    "Ant": f"{symbols('q', 2, 15)} {symbols('v', 0, 14)} {'0 ' * 84}",
    "HalfCheetah": f"{symbols('q', 1, 9)} {symbols('v', 0, 9)}",
    "Hopper": f"{symbols('q', 1, 6)} {symbols('w', 0, 6)}",
    "Walker2d": f"{symbols('q', 1, 9)} {symbols('w', 0, 9)}",
    "ManyagentSwimmer": f"{symbols('q', 2, 19)} {symbols('v', 0, 19)}",
}
Own = list[tuple[str, ...]]


def legs(*of_agents: tuple[int, ...]) -> Own:
    """The joints of ant agents that have these legs."""
    return [tuple(f"{part}_{i}" for i in agent for part in ("hip", "ankle")) for agent in of_agents]


CHEETAH = ("bfoot", "bshin", "bthigh", "ffoot", "fshin", "fthigh")
OWNED: dict[str, Own] = {
    "Reacher-2x1": [("joint0",), ("joint1",)],
    "Ant-2x4": legs((1, 2), (3, 4)),
    "Ant-4x2": legs((1,), (2,), (3,), (4,)),
    "Walker2d-2x3": [
        ("foot_joint", "leg_joint", "thigh_joint"),
        ("foot_left_joint", "leg_left_joint", "thigh_left_joint"),
    ],
    "Hopper-3x1": [("thigh_joint",), ("leg_joint",), ("foot_joint",)],
    "HalfCheetah-6x1": [(name,) for name in CHEETAH],
    "HalfCheetah-2x3": [CHEETAH[:3], CHEETAH[3:]],
    "ManyagentSwimmer-8x2": [(f"rot{2 * i}", f"rot{2 * i + 1}") for i in range(8)],
}
"""The joints of each agent, by their names in the model."""
LINKS: dict[str, list[tuple[str, ...]]] = {
    "Reacher": [("joint0", "joint1")],
    "Ant": [*legs((1,), (2,), (3,), (4,)), ("hip_1", "hip_2", "hip_3", "hip_4")],
    "Walker2d": [
        ("foot_joint", "leg_joint"),
        ("leg_joint", "thigh_joint"),
        ("foot_left_joint", "leg_left_joint"),
        ("leg_left_joint", "thigh_left_joint"),
        ("thigh_joint", "thigh_left_joint"),
    ],
    "Hopper": [("thigh_joint", "leg_joint"), ("leg_joint", "foot_joint")],
    "HalfCheetah": [
        ("bfoot", "bshin"),
        ("bshin", "bthigh"),
        ("bthigh", "fthigh"),
        ("fthigh", "fshin"),
        ("fshin", "ffoot"),
    ],
    "ManyagentSwimmer": [(f"rot{i}", f"rot{i + 1}") for i in range(15)],
}
"""Joints that are neighbours of each other."""
ROOTS = {
    "Reacher": "q2 q3",
    "Ant": ANT_ROOT,
    "Hopper": HOPPER_ROOT,
    "HalfCheetah": CHEETAH_ROOT,
}
"""What all agents observe after the joints; nothing for the walker and the swimmer."""
