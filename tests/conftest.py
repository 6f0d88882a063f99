"""What all tests share: Spark and Java tests keep to one worker, and say what is missing when they cannot run."""

from __future__ import annotations

import shutil

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    for item in items:
        if item.get_closest_marker("java") and missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(missing)} on PATH"))
        if item.get_closest_marker("java") or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("jvm"))
