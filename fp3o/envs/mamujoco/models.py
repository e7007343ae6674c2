"""MuJoCo models of the bodies: files of gymnasium, and bodies of any length."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false

import importlib.util
import xml.etree.ElementTree as ET
from copy import deepcopy
from functools import cache
from pathlib import Path

import mujoco

from fp3o.errors import SettingError


def _gymnasium_model(name: str) -> ET.Element:
    """A model file of gymnasium."""
    spec = importlib.util.find_spec("gymnasium")
    if spec is None or spec.origin is None:
        raise ImportError("the MuJoCo bodies need gymnasium's model files: pip install gymnasium")
    path = Path(spec.origin).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"
    if not path.exists():
        raise ImportError(f"gymnasium has no model file {path}: install a version with v5 tasks")
    return ET.parse(path).getroot()


@cache
def compile_model(name: str, profile: str, segments: int = 0) -> mujoco.MjModel:
    """The model of a body under a profile; bodies of many segments need their number."""
    if name == "ManyagentSwimmer":
        root = _long_swimmer(segments, timestep=0.005 if profile == "paper" else 0.01)
    elif name == "ManySegmentAnt":
        root = _long_ant(segments)
    elif name == "CoupledHalfCheetah":
        root = _coupled_cheetahs()
    else:
        root = _gymnasium_model(_FILES[name])
    if name == "Walker2d" and profile == "paper":
        # In gym 0.10 the right foot of the walker has less friction than the left one.
        next(geom for geom in root.iter("geom") if geom.get("name") == "foot_geom").set(
            "friction", "0.9"
        )
    return _compile(root)


_FILES = {
    "Ant": "ant",
    "HalfCheetah": "half_cheetah",
    "Hopper": "hopper",
    "Humanoid": "humanoid",
    "HumanoidStandup": "humanoidstandup",
    "InvertedDoublePendulum": "inverted_double_pendulum",
    "InvertedPendulum": "inverted_pendulum",
    "Pusher": "pusher_v5",
    "Reacher": "reacher",
    "Swimmer": "swimmer",
    "Walker2d": "walker2d_v5",
}
"""Body -> model file of gymnasium."""


def _compile(root: ET.Element) -> mujoco.MjModel:
    """Compile, setting the total mass by a call, since the attribute for it is deprecated."""
    compiler = root.find("compiler")
    mass = None if compiler is None else compiler.attrib.pop("settotalmass", None)
    model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    if mass is not None:
        mujoco.mj_setTotalmass(model, float(mass))
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def _coupled_cheetahs() -> ET.Element:
    """Two half cheetahs side by side, tied together by an elastic tendon."""
    root = _gymnasium_model("half_cheetah")
    world, motors = _part(root, "worldbody"), _part(root, "actuator")
    body, templates = _part(world, "body"), list(motors)
    world.remove(body)
    for number, y in enumerate((-1, 1)):
        twin = deepcopy(body)
        _rename(twin, str(number))
        twin.set("pos", f"0 {y} .7")
        twin.insert(0, ET.Element("site", name=f"t{number}", pos="0 0 0", size="0.1"))
        world.append(twin)
        for template in templates:
            motor = deepcopy(template)
            _rename(motor, str(number))
            motors.append(motor)
    for template in templates:
        motors.remove(template)
    tendon = ET.SubElement(
        ET.SubElement(root, "tendon"), "spatial", name="tendon0", width="0.05",
        rgba=".95 .3 .3 1", limited="true", range="1.5 3.5", stiffness="0.1",
    )  # fmt: skip
    for number in range(2):
        ET.SubElement(tendon, "site", site=f"t{number}")
    return root


def _part(root: ET.Element, tag: str) -> ET.Element:
    found = root.find(tag)
    if found is None:
        raise ValueError(f"the model has no <{tag}>")
    return found


def _rename(root: ET.Element, suffix: str) -> None:
    for element in root.iter():
        for attribute in ("name", "joint"):
            if attribute in element.attrib:
                element.set(attribute, element.attrib[attribute] + suffix)


def _long_swimmer(segments: int, timestep: float) -> ET.Element:
    """A chain of `segments` actuated links behind a head, in a viscous fluid."""
    if segments < 2:
        raise SettingError(f"a many-agent swimmer needs at least 2 segments, got {segments}")
    root = _scene("swimmer", density="4000", viscosity="0.1", timestep=str(timestep))
    defaults = ET.SubElement(root, "default")
    ET.SubElement(defaults, "geom", conaffinity="0", contype="0", condim="1", rgba=".8 .6 .4 1")
    ET.SubElement(defaults, "joint", armature="0.1")
    world = ET.SubElement(root, "worldbody")
    ET.SubElement(
        world, "geom", name="floor", type="plane", size="40 40 0.1", pos="0 0 -0.1", condim="3"
    )
    link = ET.SubElement(world, "body", name="torso", pos="0 0 0")
    _capsule(link, "1.5 0 0 0.5 0 0", "0.1", density="1000")
    for name, joint_type, axis in (("slider1", "slide", "1 0 0"), ("slider2", "slide", "0 1 0"),
                             ("rot", "hinge", "0 0 1")):  # fmt: skip
        ET.SubElement(link, "joint", name=name, type=joint_type, axis=axis, pos="0 0 0")
    motors = ET.SubElement(root, "actuator")
    for i in range(segments):
        link = ET.SubElement(link, "body", name=f"mid{i}", pos="-1 0 0" if i else "0.5 0 0")
        _capsule(link, "0 0 0 -1 0 0", "0.1", density="1000")
        # Links turn alternately to the left and to the right, the first and the last to the left.
        left = i in (0, segments - 1) or i % 2
        ET.SubElement(
            link, "joint", name=f"rot{i}", type="hinge", axis=f"0 0 {1 if left else -1}",
            pos="0 0 0", limited="true", range="-100 100",
        )  # fmt: skip
        _motor(motors, f"rot{i}")
    return root


def _long_ant(segments: int) -> ET.Element:
    """An ant with `segments` pairs of legs in a row."""
    if segments < 1:
        raise SettingError(f"a many-segment ant needs at least 1 segment, got {segments}")
    root = _scene("ant", timestep="0.01")
    defaults = ET.SubElement(root, "default")
    ET.SubElement(defaults, "joint", armature="1", damping="1", limited="true")
    ET.SubElement(
        defaults, "geom", conaffinity="0", condim="3", density="5.0", friction="1 0.5 0.5",
        margin="0.01", rgba="0.8 0.6 0.4 1",
    )  # fmt: skip
    world = ET.SubElement(root, "worldbody")
    ET.SubElement(
        world, "geom", name="floor", type="plane", size="40 40 40", conaffinity="1", condim="3"
    )
    motors, torso = ET.SubElement(root, "actuator"), world
    for i in range(segments):
        torso = ET.SubElement(torso, "body", name=f"torso_{i}", pos="-1 0 0" if i else "0 0 0.75")
        if i:
            _capsule(torso, "1 0 0 0 0 0", "0.1", density="100")
            _leg(torso, f"1_{i}", (0.0, 0.2), (-0.2, 0.2), "1 1 0", "-70 -30")
            _leg(torso, f"2_{i}", (0.0, -0.2), (-0.2, -0.2), "-1 1 0", "-70 -30")
        else:
            ET.SubElement(
                torso, "joint", name="root", type="free", armature="0", damping="0",
                limited="false", margin="0.01",
            )  # fmt: skip
            _leg(torso, f"1_{i}", (0.2, 0.2), (0.2, 0.2), "-1 1 0", "30 70")
            _leg(torso, f"2_{i}", (0.2, -0.2), (0.2, -0.2), "1 1 0", "30 70")
        for joint in (f"hip1_{i}", f"ankle1_{i}", f"hip2_{i}", f"ankle2_{i}"):
            _motor(motors, joint)
    return root


def _leg(
    torso: ET.Element,
    label: str,
    aside: tuple[float, float],
    along: tuple[float, float],
    axis: str,
    bend: str,
) -> None:
    """A fixed stump `aside`, a hip that turns about z, an ankle that bends."""
    out, on, far = (f"{x} {y} 0" for x, y in (aside, along, (2 * along[0], 2 * along[1])))
    stump = ET.SubElement(torso, "body", name=f"stump{label}", pos="0 0 0")
    _capsule(stump, f"0 0 0 {out}", "0.08")
    hip = ET.SubElement(stump, "body", name=f"leg{label}", pos=out)
    ET.SubElement(hip, "joint", name=f"hip{label}", type="hinge", axis="0 0 1", range="-30 30")
    _capsule(hip, f"0 0 0 {on}", "0.08")
    foot = ET.SubElement(hip, "body", name=f"foot{label}", pos=on)
    ET.SubElement(foot, "joint", name=f"ankle{label}", type="hinge", axis=axis, range=bend)
    _capsule(foot, f"0 0 0 {far}", "0.08")


def _scene(name: str, **option: str) -> ET.Element:
    root = ET.Element("mujoco", model=name)
    ET.SubElement(root, "compiler", angle="degree", inertiafromgeom="true")
    ET.SubElement(root, "option", integrator="RK4", attrib=option)
    return root


def _capsule(body: ET.Element, ends: str, size: str, **more: str) -> None:
    ET.SubElement(body, "geom", type="capsule", fromto=ends, size=size, attrib=more)


def _motor(motors: ET.Element, joint: str) -> None:
    ET.SubElement(motors, "motor", joint=joint, ctrllimited="true", ctrlrange="-1 1", gear="150")
