"""Every entry point with every exporter and every way in which a call can end.

    python -m tests.lifetime.matrix [--only TEXT] [--ways WAY,WAY]

A process that has loaded everything forks for each entry point and way, and after a failure for each exporter, so that
a crash is reported with its name. Failures are printed, and the exit status is then 1.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple

from kafkacodec.errors import KafkaCodecError
from tests.lifetime.arrow import ARROW_ENTRIES, ARROW_EXPORTERS
from tests.lifetime.entries import ENTRIES, Entry
from tests.lifetime.exporters import EXPORTERS, Export

SECONDS = 300
"""Timeout of a process."""


class Combination(NamedTuple):
    """One cell of the matrix."""

    entry: str
    exporter: str
    way: str

    def __str__(self) -> str:
        return " | ".join(self)


def entry_of(name: str) -> Entry:
    return ENTRIES.get(name) or ARROW_ENTRIES[name]


def export_of(entry: str, exporter: str, data: Any) -> Export:
    made: Export = EXPORTERS[exporter](data) if entry in ENTRIES else ARROW_EXPORTERS[exporter](data)
    return made


# --- the ways ---------------------------------------------------------------------------------------------------------


PLAIN = ("bytes", "pyarrow array")
"""The exporters with the expected results."""

wanted: dict[str, Any] = {}
"""The results of `Entry.show` for them, by entry."""


def learn(names: Iterable[str]) -> None:
    for name in names:
        entry = entry_of(name)
        exporter = PLAIN[name in ARROW_ENTRIES]
        wanted[name] = entry.show(entry.call(export_of(name, exporter, entry.good).data))


def expect(name: str, export: Export) -> Any:
    """The result for good data, after checking it."""
    result = entry_of(name).call(export.data)
    require_same(name, result)
    return result


def require_same(name: str, result: Any) -> None:
    assert entry_of(name).show(result) == wanted[name], "another result than from bytes"


def refuse(call: Callable[[Any], Any], data: Any) -> KafkaCodecError:
    """The exception for bad data."""
    try:
        call(data)
    except KafkaCodecError as error:
        return error
    raise AssertionError("bad data were taken")


def success(name: str, exporter: str) -> None:
    export = export_of(name, exporter, entry_of(name).good)
    result = expect(name, export)
    gc.collect()
    require_same(name, result)
    del result
    gc.collect()
    export.require_free()


def fault(name: str, exporter: str) -> None:
    entry = entry_of(name)
    export = export_of(name, exporter, entry.bad)
    error = refuse(entry.call, export.data)
    str(error), error.__traceback__
    del error
    gc.collect()
    export.require_free()


def cycle(name: str, exporter: str) -> None:
    """The exception, the data and the result are in a cycle, which only the garbage collector finds."""
    entry = entry_of(name)
    export = export_of(name, exporter, entry.good if entry.bad is None else entry.bad)

    def in_a_frame(data: Any) -> None:
        kept: list[Any] = [data]
        try:
            kept.append(entry.call(data))
        except KafkaCodecError as error:
            kept.append(error)
        kept.append(kept)
        frame = sys._getframe()
        kept.append(frame)

    gc.disable()
    in_a_frame(export.data)
    gc.enable()
    gc.collect()
    gc.collect()
    export.require_free()


def fork(name: str, *exporters: str) -> None:
    """Parent and child both use the objects that the parent created, from all exporters: one fork serves them."""
    entry = entry_of(name)
    exports = [(exporter, export_of(name, exporter, entry.good)) for exporter in exporters]
    results = [expect(name, export) for _, export in exports]
    child = os.fork()
    if child == 0:
        try:
            for exporter, export in exports:
                require_same(name, results[0])
                expect(name, export_of(name, exporter, entry.good))
                del results[0]
                gc.collect()
                export.require_free()
        except BaseException:
            faulthandler.dump_traceback()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"the child ended with {os.waitstatus_to_exitcode(status)}"
    for _, export in exports:
        require_same(name, results[0])
        del results[0]
        export.require_free()


def thread(name: str, exporter: str) -> None:
    """Created in one thread, inspected and freed in another while a third one does the same."""
    entry = entry_of(name)
    results: list[Any] = []
    exports = [export_of(name, exporter, entry.good) for _ in range(3)]
    threads = [threading.Thread(target=lambda e=e: results.append(expect(name, e))) for e in exports]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(results) == len(exports), "a thread failed"
    for result in results:
        require_same(name, result)
    results.clear()
    del result
    gc.collect()
    for export in exports:
        export.require_free()


alive: list[Any] = []


def end(name: str, exporter: str) -> None:
    """The interpreter exits with all objects alive, partly in a cycle."""
    entry = entry_of(name)
    export = export_of(name, exporter, entry.good)
    held = [export, entry.call(export.data)]
    alive.append(held)
    alive.append(alive)
    if entry.bad is not None:
        export = export_of(name, exporter, entry.bad)
        alive.extend([export, refuse(entry.call, export.data)])
    sys.modules[f"alive {len(alive)}"] = held  # type: ignore[assignment]


WAYS: dict[str, Callable[..., None]] = {
    "success": success,
    "fault": fault,
    "cycle": cycle,
    "fork": fork,
    "thread": thread,
    "end": end,
}


# --- the processes ----------------------------------------------------------------------------------------------------


def combinations(ways: Iterable[str], only: str) -> Iterator[Combination]:
    for way in ways:
        for entries, exporters in ((ENTRIES, EXPORTERS), (ARROW_ENTRIES, ARROW_EXPORTERS)):
            for entry in entries:
                for exporter in exporters:
                    made = Combination(entry, exporter, way)
                    if only in str(made) and possible(made):
                        yield made


def possible(cell: Combination) -> bool:
    """Whether the combination can occur, and what it requires can be expected.

    A fork copies the decoder that a thread of the parent uses at that moment, but not the thread, which would release
    the buffer: in the child, the export of a suspended iterator with threads remains.
    """
    if cell.way == "fork":
        return cell.entry != "iter_columns in threads suspended"
    return cell.way != "fault" or entry_of(cell.entry).bad is not None


class Child(BaseException):
    """Ends the loop in a forked process, which then exits like an interpreter."""


def run(cells: list[Combination], log: IO[str]) -> int:
    """The exit status of a process that runs them one after the other; its stderr goes to the file."""
    log.seek(0)
    log.truncate()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.dup2(log.fileno(), 2)
    signal.alarm(SECONDS)
    faulthandler.enable()
    if cells[0].way == "fork":
        fork(cells[0].entry, *(cell.exporter for cell in cells))
    else:
        for cell in cells:
            WAYS[cell.way](cell.entry, cell.exporter)
    if cells[0].way == "end":
        raise Child
    sys.stderr.flush()
    os._exit(0)


def failures(cells: Iterable[Combination]) -> Iterator[str]:
    """Failures, by combination. An entry's exporters share a process and, if that fails, have one each: forks and exits
    take longest.
    """
    with tempfile.TemporaryFile("w+") as log:
        for group in _groups(cells):
            if (together := run(group, log)) == 0:
                continue
            whole = _described(f"{group[0].entry} | all exporters | {group[0].way}", together, log)
            alone = [_described(str(cell), status, log) for cell in group if (status := run([cell], log))]
            yield from alone or [whole]


def _described(name: str, status: int, log: IO[str]) -> str:
    """A failure, with the last lines of what the process wrote."""
    log.seek(0)
    return f"{name}: exit {status}\n    " + "\n    ".join(log.read().strip().splitlines()[-12:])


def _groups(cells: Iterable[Combination]) -> Iterable[list[Combination]]:
    groups: dict[tuple[str, str], list[Combination]] = {}
    for cell in cells:
        groups.setdefault((cell.entry, cell.way), []).append(cell)
    return groups.values()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="combinations whose name has this text")
    parser.add_argument("--ways", default=",".join(WAYS), help="of %(default)s")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # of fork with threads
    cells = list(combinations(options.ways.split(","), options.only))
    learn({cell.entry for cell in cells})
    gc.collect()
    gc.freeze()  # the collectors of the children ignore loaded modules, whose memory stays shared
    found = 0
    for failure in failures(cells):
        found += 1
        print(failure, flush=True)
    print(f"{len(cells)} combinations, {found} failed; Python {sys.version.split()[0]}")
    return 1 if found or not cells else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Child:
        sys.exit(0)
