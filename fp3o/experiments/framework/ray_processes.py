"""The processes of one run as Ray actors, with its files on the machine that started it.

Actors of a placement group start the processes. The leader works in a temporary folder of its node;
changed files are sent to a `ResultStore` on the starting machine, from which the next leader
resumes if a node fails. Nodes need no shared disk, only fp3o itself.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from fp3o.errors import SettingError
from fp3o.experiments.framework.folder_sync import FolderSync, write_file
from fp3o.experiments.framework.ray_backend import start_store
from fp3o.experiments.framework.ray_cluster import ClusterError, connect, import_ray
from fp3o.runs.progress import Display
from fp3o.runs.supervisor import LOST, Member, free_port
from fp3o.training.mesh import split_devices

PLACEMENT_SECONDS = 120.0
"""Seconds that a cluster has to provide the resources of all processes."""

Entry = Callable[[Sequence[str]], int]
"""Runs a command in the actor's process, given its arguments; returns the exit status."""

Arguments = Callable[[int, str, str], Sequence[Sequence[str]]]
"""Arguments of every process, from their number, an address and the leader's run directory."""


class RunProcess:
    """One process of a run; a class of Ray actors."""

    def address(self) -> str:
        """An address of this node at which the other processes find the leader."""
        host = import_ray().util.get_node_ip_address()
        return f"{host}:{free_port(host)}"

    def run(self, entry: Entry, arguments: Sequence[str]) -> int:
        """Run a process that writes no files."""
        return entry(arguments)

    def lead(
        self, entry: Entry, make: Callable[[str], Sequence[str]], store: Any, name: str
    ) -> int:
        """Run the process that writes the files, which are those of the store at first."""
        ray = import_ray()
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / name
            for path, content in ray.get(store.get.remote(name)).items():
                write_file(folder / path, content)

            def put(changed: Any, removed: Any) -> None:
                ray.get(store.put.remote(name, changed, removed))

            with FolderSync(folder, put):
                return entry(make(str(folder)))


class RayProcess:
    """A process of a run, as its supervisor sees it."""

    def __init__(self, ray: Any, actor: Any, task: Any):
        self._ray, self._actor, self._task = ray, actor, task
        self._error = ""

    def status(self) -> int | None:
        """Exit status; None while it runs."""
        ready, _ = self._ray.wait([self._task], timeout=0)
        if not ready:
            return None
        try:
            return self._ray.get(self._task)
        except self._ray.exceptions.RayError as error:  # the process or its node is gone
            self._error = f"{type(error).__name__}: {error}"
            return LOST

    def kill(self) -> None:
        """End it at once."""
        self._ray.kill(self._actor)

    def last_error(self) -> str:
        """The last line of its errors."""
        return self._error.strip().splitlines()[0] if self._error else ""


@dataclass
class RayProcesses:
    """Starts the processes of a run on a cluster, as many as its nodes have room for."""

    entry: Entry
    arguments: Arguments
    path: Path
    """The run directory on this machine."""
    wanted: int
    """Number of processes."""
    devices: int
    """Devices per process."""
    seeds_and_blocks: tuple[int, int]
    resources: dict[str, float]
    """CPU and GPU of a process."""
    display: Display

    def connect(self, address: str | None) -> None:
        """Connect to the cluster, and open the store of the run's files."""
        self._ray = import_ray()
        connect(self._ray, address, self.display)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._store = start_store(self._ray, self.path.parent)
        self._group: Any = None

    def start(self, attempt: int) -> Sequence[Member]:
        """Start all processes; after a failure perhaps fewer than before."""
        ray, count = self._ray, self._count()
        if count < self.wanted:
            self.display.say(f"{count} processes: the cluster has no room for {self.wanted}")
        actors = self._actors(count)
        address = ray.get(actors[0].address.remote())
        make, number = self.arguments, count

        def leader(folder: str) -> Sequence[str]:
            return make(number, address, folder)[0]

        # The store shows whether the run exists: only the leader's arguments depend on it.
        others = make(count, address, str(self.path))[1:]
        tasks = [actors[0].lead.remote(self.entry, leader, self._store, self.path.name)]
        tasks += [
            actor.run.remote(self.entry, each)
            for actor, each in zip(actors[1:], others, strict=True)
        ]
        return [RayProcess(ray, *pair) for pair in zip(actors, tasks, strict=True)]

    def close(self) -> None:
        """Free the resources of the run."""
        if self._group is not None:
            import_module("ray.util.placement_group").remove_placement_group(self._group)
        self._ray.kill(self._store)

    def _actors(self, count: int) -> list[Any]:
        ray, groups = self._ray, import_module("ray.util.placement_group")
        if self._group is not None:
            groups.remove_placement_group(self._group)
        self._group = groups.placement_group([self.resources] * count, strategy="SPREAD")
        ready, _ = ray.wait([self._group.ready()], timeout=PLACEMENT_SECONDS)
        if not ready:
            raise ClusterError(
                f"the cluster has not provided {count} x {self.resources} within "
                f"{PLACEMENT_SECONDS:.0f} s: other work may use its nodes"
            )
        strategies = import_module("ray.util.scheduling_strategies")
        options = {"num_cpus": self.resources["CPU"], "num_gpus": self.resources.get("GPU", 0)}
        return [
            ray.remote(RunProcess).options(
                **options,
                scheduling_strategy=strategies.PlacementGroupSchedulingStrategy(
                    self._group, placement_group_bundle_index=index
                ),
            ).remote()
            for index in range(count)
        ]  # fmt: skip

    def _count(self) -> int:
        """The largest number of processes for which the cluster has room and that fits the run."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        room = sum(_room(node, self.resources) for node in nodes)
        for count in range(min(self.wanted, room), 0, -1):
            try:
                split_devices(count * self.devices, *self.seeds_and_blocks)
            except SettingError:
                if count == self.wanted:
                    raise
                continue
            return count
        raise ClusterError(f"no node of the cluster has {self.resources}")


def _room(node: dict[str, float], wanted: dict[str, float]) -> int:
    """Processes for which a node has room."""
    return min(int(node.get(name, 0.0) / number) for name, number in wanted.items() if number)
