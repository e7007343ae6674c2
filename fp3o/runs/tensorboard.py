"""The logger for TensorBoard: event files in the run directory."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fp3o.runs.logger import LoggedRun


class TensorBoard:
    """One event file per seed, so that TensorBoard draws one curve for each."""

    def __init__(self, run: LoggedRun):
        from tensorboardX import SummaryWriter

        # Hides the rows written after the checkpoint: training writes them again.
        purge = run.first_step or None
        self._run = run
        self._writers = {
            seed: SummaryWriter(str(run.path / "tensorboard" / f"seed-{seed}"), purge_step=purge)
            for seed in run.seeds
        }

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add the values of each seed."""
        for row in rows:
            for name, value in self._run.flat(row):
                self._writers[row["seed"]].add_scalar(name, value, row["step"])

    def video(self, path: Path, seed: int, step: int) -> None:
        """Add a GIF as an image, which TensorBoard shows as a moving one."""
        from PIL import Image
        from tensorboardX.proto import summary_pb2

        proto: Any = summary_pb2
        with Image.open(path) as first:
            width, height = first.size
        image = proto.Summary.Image(
            height=height, width=width, colorspace=3, encoded_image_string=path.read_bytes()
        )
        value = proto.Summary.Value(tag=self._run.video_name, image=image)
        writer: Any = self._writers[seed].file_writer
        writer.add_summary(proto.Summary(value=[value]), step)

    def close(self) -> None:
        """Close every file."""
        for writer in self._writers.values():
            writer.close()
