"""Plays the scenarios by hand.

python -m tests.differential record [RELEASE…] [--folder NAME] [--only WORD]    golden answers, of Apache Kafka
python -m tests.differential compare [--release 4|3.9] [--folder NAME] [--only WORD]    this broker's beside them
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.differential import golden
from tests.differential.brokers import FOLDERS, answers, kafka, of_this_broker
from tests.differential.checking import check
from tests.differential.playing import play


def record(releases: list[str], folders: list[str], only: str) -> int:
    """Write golden answers anew; those of scenarios that fail stay as they were."""
    failed = 0
    for release in releases:
        for folder in folders:
            with (
                tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
                kafka(release, folder, Path(directory)) as (server, restart),
            ):
                played = play(server, folder, restart, only=only)
            good = {title: one for title, one in played.items() if not one.failed}
            golden.write(release, answers(good), set(good))
            for title in sorted(played.keys() - good.keys()):
                print(f"{release} {title}: {played[title].failed}")
            failed += len(played) - len(good)
            print(f"{release} {folder}: {len(answers(good))} steps of {len(good)} scenarios")
    return 1 if failed else 0


def compare(release: str, folders: list[str], only: str) -> int:
    """Print where the embedded broker differs from a release, but for the known differences."""
    found = 0
    for folder in folders:
        with tempfile.TemporaryDirectory() as directory:
            played = of_this_broker(folder, Path(directory), release, only)
        result = check(played, release, whole=not only)
        print("\n".join(result.lines))
        print(f"{folder}: {result.equal} of {result.steps} steps equal ({len(played)} scenarios)")
        found += len(result.lines)
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=("record", "compare"))
    parser.add_argument("releases", nargs="*", default=golden.RELEASES)
    parser.add_argument("--folder", choices=FOLDERS, action="append")
    parser.add_argument("--only", default="")
    parser.add_argument("--release", default="4", choices=("4", "3.9"))
    options = parser.parse_args()
    folders = options.folder or list(FOLDERS)
    if options.task == "record":
        return record(options.releases, folders, options.only)
    return compare(options.release, folders, options.only)


if __name__ == "__main__":
    sys.exit(main())
