"""The report's page: a summary, plots and tables of a survey, put into the template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

import kafkacodec
from kafkacodec.cli.commands.report.figures import damage_plot, lag_plot, plots_of
from kafkacodec.cli.commands.report.tables import (
    damage_table,
    findings_table,
    lag_table,
    minute,
    num_records,
    partition_table,
    topic_table,
)
from kafkacodec.cli.console import visible
from kafkacodec.cli.output import counted, size
from kafkacodec.log.analysis.copies import copies_of, copies_sentence
from kafkacodec.log.analysis.damage_map import damage_map
from kafkacodec.log.analysis.partition_statistics import PartitionStatistics, merge_statistics, per_topic
from kafkacodec.log.analysis.survey import Survey

__all__ = ["render"]

_UNREADABLE = 200  # paths that are listed


def render(survey: Survey, paths: Iterable[str], made_at: datetime | None = None) -> str:
    """The page.

    Args:
        survey: what it shows.
        paths: the paths that were given, for the heading.
        made_at: when; by default now.
    """
    total = merge_statistics(survey.partitions)
    topics = sorted(per_topic(survey.partitions), key=lambda topic: (-topic.size_in_bytes, topic.topic or ""))
    damaged = damage_map(survey.reports)
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template), autoescape=True, undefined=jinja2.StrictUndefined, finalize=_finalize
    )
    return environment.get_template("page.jinja").render(
        style=Markup(_template("page.css")),
        paths=list(paths),
        made_at=f"{made_at or datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
        version=kafkacodec.__version__,
        verified=survey.verified,
        state=_state(survey, total),
        copies=copies_sentence(copies_of(survey.partitions)),
        tiles=_tiles(survey, total, topics),
        unreadable=survey.unreadable[:_UNREADABLE],
        more_unreadable=max(0, len(survey.unreadable) - _UNREADABLE),
        plots=[plot for plot in plots_of(survey, total, topics) if plot is not None],
        damage=damage_plot(damaged),
        lag=lag_plot(survey),
        lags=lag_table(survey),
        damaged=damage_table(damaged, survey.reports),
        findings=findings_table(survey),
        topics=topic_table(topics, survey),
        partitions=partition_table(survey),
    )


def _template(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _finalize(value: Any) -> Any:
    """Text of the log on one line, without characters that change how others are shown; escaped afterwards."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _state(survey: Survey, total: PartitionStatistics) -> tuple[str, str]:
    """A word for the page's class, and a sentence."""
    unread = f" {counted(len(survey.unreadable), 'file or directory', 'files or directories')} could not be read."
    unread = unread if survey.unreadable else ""
    reports = survey.reports
    if unread or total.damaged or not all(report.ok for report in reports):
        lost = sum(report.damaged_bytes for report in reports) if survey.verified else total.damaged_bytes
        missing = sum(report.missing_offsets for report in reports) if survey.verified else total.missing_offsets
        what = [counted(missing, "offset") + " missing"] if missing else []
        what = [size(lost) + " damaged", *what] if lost else what
        return "bad", ("Damaged: " + ", ".join(what) + "." if what else "Damaged." if not unread else "") + unread
    if not survey.verified:
        return "unknown", "Only headers of batches were read: damage inside batches is not found."
    if not all(report.clean for report in reports):
        return "warnings", "All records can be read. There are warnings about other files."
    return "intact", "All records were read and are intact."


def _tiles(
    survey: Survey, total: PartitionStatistics, topics: Sequence[PartitionStatistics]
) -> list[tuple[str, str, int | None]]:
    """Title, text and value of the numbers on top."""
    records = num_records(total, survey.reports)
    return [
        ("topics", f"{len(topics):,}", len(topics)),
        ("partitions", f"{total.num_partitions:,}", total.num_partitions),
        ("segments", f"{total.num_segments:,}", total.num_segments),
        ("size", size(total.size_in_bytes), total.size_in_bytes),
        ("batches", f"{total.num_batches:,}", total.num_batches),
        ("records", "unknown" if records is None else f"{records:,}", records),
        ("first record (UTC)", minute(total.first_timestamp), total.first_timestamp),
        ("last record (UTC)", minute(total.last_timestamp), total.last_timestamp),
    ]
