"""A Ray cluster as `--on ray` starts it: who listens where.

Prints JSON: the lines displayed, the addresses on which this process and its descendants listen,
the mode of authentication, and the files with a token that were left in HOME.
"""

import ipaddress
import json
import os
from pathlib import Path

import ray
from finished_cells import RecordingDisplay

from fp3o.experiments.framework.ray_cluster import connect

LISTENING = "0A"


def descendants(root: int) -> set[int]:
    """A process and all processes below it."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {root}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def sockets(processes: set[int]) -> set[str]:
    """The numbers of their sockets."""
    found = set()
    for number in processes:
        for path in Path(f"/proc/{number}/fd").glob("*"):
            try:
                found.add(os.readlink(path).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
    return found


def listeners(owned: set[str]) -> list[str]:
    """Addresses on which these sockets listen."""
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in owned:
                found.add(address(fields[1].partition(":")[0]))
    return sorted(found)


def address(text: str) -> str:
    """An address from /proc/net: words of four bytes in the machine's order."""
    words = [bytes.fromhex(text[k : k + 8])[::-1] for k in range(0, len(text), 8)]
    found = ipaddress.ip_address(b"".join(words))
    return str(getattr(found, "ipv4_mapped", None) or found)


def main() -> None:
    display = RecordingDisplay()
    connect(ray, None, display)
    ray.get(ray.remote(lambda: 1).remote())  # until there is a worker, which listens as well
    output = {
        "finished": True, "lines": display.lines, "mode": os.environ["RAY_AUTH_MODE"],
        "listeners": listeners(sockets(descendants(os.getpid()))),
        "left": [str(path) for path in Path.home().rglob("*token*")],
    }  # fmt: skip
    print("\n" + json.dumps(output), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
