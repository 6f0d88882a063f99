"""What progress bars show beside the bar."""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.progress import Progress

from kafkacodec.cli.progress_columns import counts


@pytest.mark.parametrize(
    ("records", "total", "shown"),
    [
        (False, 5 << 20, ["2.5/5.0 MiB", "1.2 MiB/s"]),
        (False, 3000, ["1.5/2.9 KiB", "750.0 bytes/s"]),
        (True, 3000, ["1,500 of 3,000 records", "750/s"]),
    ],
)
def test_amount_and_speed_have_the_same_units(records, total, shown):
    now = 0.0
    columns = counts(records)
    bar = Progress(*columns, console=Console(quiet=True), get_time=lambda: now)
    task = bar.add_task("reading", total=total)
    assert columns[1](bar.tasks[0]).plain == ""  # type: ignore[operator]
    bar.update(task, advance=0)
    now = 2.0
    bar.update(task, advance=total / 2)
    texts = [column(bar.tasks[0]).plain for column in columns]  # type: ignore[operator]
    assert texts[0] == shown[0]
    assert texts[1] in (shown[1], "")
