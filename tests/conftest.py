"""What all tests share: Spark tests keep to one worker, tests of brokers to another, and say what they lack to run."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import HealthCheck, settings

# No test is about time: a busy machine must not fail one.
settings.register_profile("timeless", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("timeless")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    for item in items:
        if item.get_closest_marker("java") and missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(missing)} on PATH"))
        if mark := item.get_closest_marker("spark") or item.get_closest_marker("java"):
            item.add_marker(pytest.mark.xdist_group(mark.name))
