"""The answers of Apache Kafka in tests/data/broker/answers: a file for each release, one step a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "data" / "broker" / "answers"
NEWEST = "4.4.0"
RELEASES = ("3.9.1", "4.1.0", NEWEST)

Answers = dict[str, Any]


def read(release: str) -> Answers:
    """The answers of a release, by step."""
    newest = _load(NEWEST)
    if release == NEWEST:
        return newest
    return {step: answer for step, answer in (newest | _load(release)).items() if answer is not None}


def write(release: str, answers: Answers, titles: set[str]) -> None:
    """Keep the answers of a release to the scenarios that were played; those of others stay as they are."""
    found = {name: read(name) for name in RELEASES}
    kept = {step: answer for step, answer in found[release].items() if step.partition("/")[0] not in titles}
    found[release] = kept | answers
    newest = found[NEWEST]
    _save(NEWEST, newest)
    for name in RELEASES[:-1]:
        # What is as in the newest release is left out; null stands for a step that the scenario does not come to.
        steps = {*newest, *found[name]}
        _save(name, {step: found[name].get(step) for step in steps if newest.get(step) != found[name].get(step)})


def _load(release: str) -> Answers:
    path = FOLDER / f"{release}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def _save(release: str, answers: Answers) -> None:
    lines = [f"{json.dumps(step)}: {json.dumps(answers[step], separators=(',', ':'))}" for step in sorted(answers)]
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{release}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
