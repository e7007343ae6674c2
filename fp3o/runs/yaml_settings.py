"""Settings in YAML, read by the rules of YAML 1.2: 1e-3 is a number, and `no` is a text."""

import re
from typing import Any, ClassVar

import yaml

PLAIN_VALUES = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9][0-9_]*",
    "float": r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)"
    r"|\.(nan|NaN|NAN)",
}
"""Values without quotes that are no text, in the order in which they are looked for."""


class SettingsLoader(yaml.SafeLoader):
    """Reads plain values only: no tags of Python, no aliases, no key twice."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse aliases, with which a short file can stand for a very large one."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not supported in settings")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that is given twice, of which YAML would keep the last value."""
        content = super().construct_mapping(node, deep)
        if len(content) < len(node.value):
            raise yaml.YAMLError("an object has the same key twice")
        return content


def _construct_int(loader: SettingsLoader, node: Any) -> int:
    return int(loader.construct_scalar(node).replace("_", ""))


def _construct_float(loader: SettingsLoader, node: Any) -> float:
    text = loader.construct_scalar(node).replace("_", "").lower()
    return float(re.sub(r"\.(?=inf|nan)", "", text))


for _name, _pattern in PLAIN_VALUES.items():
    SettingsLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(rf"(?:{_pattern})\Z"), None
    )
SettingsLoader.add_constructor("tag:yaml.org,2002:int", _construct_int)
SettingsLoader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def parse_yaml(text: str) -> Any:
    """The content of a YAML document; raises `ValueError` with the place of an error."""
    try:
        return yaml.load(text, SettingsLoader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
