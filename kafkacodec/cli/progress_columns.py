"""What a progress bar shows beside the bar: how much is done, and how fast."""

from __future__ import annotations

from rich.filesize import pick_unit_and_suffix
from rich.progress import DownloadColumn, ProgressColumn, Task
from rich.text import Text

__all__ = ["counts"]


def counts(records: bool) -> list[ProgressColumn]:
    """The columns for records, or for bytes."""
    return [_Records(), _RecordSpeed()] if records else [DownloadColumn(binary_units=True), _ByteSpeed()]


class _Records(ProgressColumn):
    """``1,200 of 5,000 records``."""

    def render(self, task: Task) -> Text:
        total = "" if task.total is None else f" of {task.total:,.0f}"
        return Text(f"{task.completed:,.0f}{total} records", style="progress.download")


class _RecordSpeed(ProgressColumn):
    """``3,000/s``; nothing while it is not known."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f}/s" if speed else "", style="progress.data.speed")


class _ByteSpeed(ProgressColumn):
    """``3.1 MiB/s``, in the units of `DownloadColumn`; nothing while it is not known."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        unit, suffix = pick_unit_and_suffix(int(speed), ["bytes", "KiB", "MiB", "GiB", "TiB"], 1024)
        return Text(f"{speed / unit:,.1f} {suffix}/s", style="progress.data.speed")
