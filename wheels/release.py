"""What has to be true before a version is tagged; then says which tag to push. The workflow `release` does the rest.

argv: --tag TAG checks, in the workflow, that the tag is that of the version.
"""

import re
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version() -> str:
    """The version, from where the build reads it."""
    return str(runpy.run_path(str(ROOT / "kafkacodec" / "version.py"))["__version__"])


def faults(number: str, changelog: str, status: str) -> list[str]:
    """What is missing for a release, in sentences."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", number):
        found.append(f"kafkacodec/version.py has {number}, which is not the version of a release")
    if not re.search(rf"^## {re.escape(number)}, \d{{4}}-\d\d-\d\d$", changelog, re.M):
        found.append(f'CHANGELOG.md has no heading "## {number}, YYYY-MM-DD"')
    if status:
        found.append(f"there are changes that are not committed:\n{status}")
    return found


def main(tag: str | None) -> None:
    """Exits with what is missing."""
    number = version()
    status = "" if tag else subprocess.run(["git", "status", "--porcelain"], capture_output=True, text=True).stdout
    found = faults(number, (ROOT / "CHANGELOG.md").read_text(), status.rstrip())
    if tag is not None and tag != f"v{number}":
        found.append(f"the tag is {tag}, the version {number}")
    if found:
        sys.exit("\n".join(found))
    if tag is None:
        print(f"{number} can be released: git tag -a v{number} -m v{number} && git push origin v{number}")


if __name__ == "__main__":
    main(sys.argv[2] if sys.argv[1:2] == ["--tag"] else None)
