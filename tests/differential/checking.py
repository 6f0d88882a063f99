"""What the embedded broker answers beside what Apache Kafka answered."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from tests.differential import golden
from tests.differential.brokers import answers
from tests.differential.comparing import shown
from tests.differential.known import AS_ANOTHER, DIFFERENT
from tests.differential.playing import Playing
from tests.differential.scenario import NOT_ADVERTISED

JUDGES = {"4": (golden.NEWEST, "4.1.0"), "3.9": ("3.9.1", golden.NEWEST, "4.1.0")}
"""By `release` of the embedded broker: whose answers it gives; those of others only where `known` says so."""
_MISSING = "no such step"


class Result(NamedTuple):
    """How the answers compare.

    Attributes:
        lines: what is wrong: steps that differ and are not known to, and known differences that are none.
        equal: how many steps are equal to those of one of the judges.
        steps: how many there are.
    """

    lines: list[str]
    equal: int
    steps: int


def check(played: dict[str, Playing], release: str, whole: bool = True) -> Result:
    """Compare answers with those of Apache Kafka; `whole` says that all scenarios of a folder were played."""
    got, judges = answers(played), [golden.read(judge) for judge in JUDGES[release]]
    lines = [f"{title}: {one.failed}" for title, one in played.items() if one.failed]
    used: set[str] = set()
    equal = 0
    steps = _counted(played, got, judges[0])
    for step in steps:
        answer = got.get(step, _MISSING)
        differs = [shown(judge.get(step, _MISSING), answer) for judge in judges]
        equal += not all(differs)
        if not differs[0]:
            continue
        reasons = _patterns(AS_ANOTHER[release] if not all(differs) else DIFFERENT[release], step)
        used |= reasons
        if not reasons:
            lines += [f"{step}: differs from {JUDGES[release][0]}", differs[0]]
    if whole:
        known = {*AS_ANOTHER[release], *DIFFERENT[release]}
        files = {title.partition(".")[0] for title in played}
        mine = {pattern for pattern in known if any(_patterns({pattern.partition(".")[0]}, file) for file in files)}
        lines += [f"{pattern}: a known difference that is none" for pattern in sorted(mine - used)]
    return Result(lines, equal, len(steps))


def _counted(played: dict[str, Playing], got: golden.Answers, wanted: golden.Answers) -> list[str]:
    """The steps that count: what a release did not have, the embedded broker may answer as it likes."""
    ends = dict.fromkeys(played, "~")  # where a scenario could not go on
    ends |= {step.partition("/")[0]: step.removesuffix("stopped") for step in wanted if step.endswith("-stopped")}
    return [
        step
        for step in sorted({*got, *wanted})
        if step.partition("/")[0] in played
        and step < ends[step.partition("/")[0]]
        and wanted.get(step) != NOT_ADVERTISED
    ]


def _patterns(known: Iterable[str], step: str) -> set[str]:
    return {pattern for pattern in known if fnmatchcase(step, pattern)}
