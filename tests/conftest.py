"""What all tests share: their event loops, and what those that need programs say without them."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import QUICK, examples, left_out
from tests.scheduling import Durations, Groups, arranged

# No test is about time: a busy machine must not fail one.
settings.register_profile(
    "timeless", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("timeless")

PROGRAMS = {"java": ("java", "mvn"), "go": ("go",), "node": ("node", "npm")}
_THERE = pytest.StashKey[frozenset[str]]()
_BUILT = {"build", "dist", "out", "spark-warehouse", "metastore_db", "derby.log", "typescript"}  # as in .gitignore
MISSING = {mark: [tool for tool in tools if shutil.which(tool) is None] for mark, tools in PROGRAMS.items()}


if importlib.util.find_spec("uvloop") is not None:  # as for the clients' own threads; see `make uvloop`

    @pytest.hookimpl(optionalhook=True)  # of pytest-asyncio
    def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Any]:
        """The event loops of asynchronous tests."""
        from kafkacodec.net.loop import new_loop

        return {"uvloop": new_loop}


@pytest.fixture
def left_open() -> Iterator[None]:
    """For tests that leave clients open, since their event loops have ended: no other test hears their warnings."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* was not closed", ResourceWarning)
        yield
        gc.collect()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Leaves modules and tests to no garbage collection: many tests collect garbage, which else takes a second each."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        leave_what_is_there()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """What the tests of a module have imported stays, too: half of the time of some was that of its collection."""
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path != item.path:
            leave_what_is_there()


def leave_what_is_there() -> None:
    """All objects that are no garbage now are left alone by the garbage collector from now on."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """What the tests start gets signals as it would from a terminal: nohup and shells' background jobs ignore some."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("KAFKACODEC_DURATIONS") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations())


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_THERE] = _entries(session.config)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run whose tests leave something in the working directory fails."""
    left = _entries(session.config) - session.config.stash.get(_THERE, frozenset())
    if left and not hasattr(session.config, "workerinput"):
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"\ntests left in the working directory: {', '.join(sorted(left))}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _entries(config: pytest.Config) -> frozenset[str]:
    """The names in the working directory, without those of caches and builds."""
    names = os.listdir(config.invocation_params.dir)
    return frozenset(
        n for n in names if not n.startswith((".", "__")) and n not in _BUILT and not n.endswith(".egg-info")
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    if "spark" in getattr(item, "fixturenames", ()):  # so that no run without Spark starts it
        item.add_marker(pytest.mark.spark)
    for mark, missing in MISSING.items():
        if missing and item.get_closest_marker(mark):
            item.add_marker(pytest.mark.skip(reason=f"needs {' and '.join(missing)} on PATH"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    out = left_out([item.nodeid for item in items]) if QUICK else set()
    config.hook.pytest_deselected(items=[items[index] for index in sorted(out)])
    items[:] = [item for index, item in enumerate(items) if index not in out]


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config) -> Any:
    return Groups(config, arranged) if config.getvalue("dist") == "loadgroup" else None
