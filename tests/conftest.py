"""What all tests share: which of them keep to one worker, and what those with a JVM say when they cannot run."""

from __future__ import annotations

import gc
import importlib.util
import re
import shutil
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# No test is about time: a busy machine must not fail one.
settings.register_profile("timeless", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("timeless")

_SPARK = "tests/integration/test_spark_"
# They start JVMs of their own, and use the session that the others share little or not at all.
_OWN_JVMS = re.compile(
    _SPARK + "(broker_kills|cluster|demo|exactly_once|export_kills|kills|live_broker|live_cluster|replicas|versions).py"
)

MISSING = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]


if importlib.util.find_spec("uvloop") is not None:  # as for the clients' own threads; see `make uvloop`

    @pytest.hookimpl(optionalhook=True)  # of pytest-asyncio
    def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Any]:
        """The event loops of asynchronous tests."""
        from kafkacodec.client.driver.thread import new_loop

        return {"uvloop": new_loop}


@pytest.fixture
def left_open() -> Iterator[None]:
    """For tests that leave clients open, since their event loops have ended: no other test hears their warnings."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* was not closed", ResourceWarning)
        yield
        gc.collect()


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("java") and MISSING:
        item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(MISSING)} on PATH"))


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Most files of Spark's tests share a session, and the tests of another file a broker: one worker runs them.

    Groups with the most tests begin first, and single tests fill the rest. Marks cannot form the groups: pytest-xdist
    adds them to an attribute that pytest 9.2 does not read.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if not file.startswith("tests/integration/"):
                return nodeid
            return file if _OWN_JVMS.fullmatch(file) else "spark" if file.startswith(_SPARK) else file

    return Groups(config, log)
