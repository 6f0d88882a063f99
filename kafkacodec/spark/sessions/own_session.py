"""A job in a Spark session of its own, for commands: errors are one sentence, and no JVM is left behind."""

from __future__ import annotations

import logging
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from kafkacodec.errors import KafkaCodecError
from kafkacodec.spark.sessions.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["in_own_session"]

T = TypeVar("T")

_OURS = re.compile(r"\bkafkacodec\.(?:\w+\.)*[A-Z]\w+: ")
_JAVAS = re.compile(r"^(?:Caused by: )?(?:[a-z]\w*\.)+[A-Z][\w$]*: ")
_OF_TRACE = re.compile(r"at [\w.$/@]+\(|\.\.\. \d+ (?:more|common frames)|Driver stacktrace:|SQLSTATE: ")


def in_own_session(
    job: Callable[[SparkSession], T],
    conf: Mapping[str, str] | None = None,
    *,
    master: str | None = None,
    app_name: str = "kafkacodec",
    quick_start: bool = False,
) -> T:
    """Start Spark, run a job, and stop Spark. An existing session of this process is used and not stopped.

    Args:
        job: gets the session.
        conf, master, app_name, quick_start: as for `kafkacodec.spark.session`.

    Raises:
        NoUsableJava: no supported JVM was found.
        KafkaCodecError: Spark fails for another reason, or is not installed; or as the job raises it.
        OSError: as the job raises it.
    """
    from pyspark import SparkContext

    ours = SparkContext._gateway is None

    def run() -> T:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        try:
            spark = session(conf, master=master, app_name=app_name, quick_start=quick_start)
            if ours:
                spark.sparkContext.setLogLevel("OFF")  # errors are raised
            done = job(spark)
            if ours:
                spark.stop()
        except (PySparkException, Py4JError) as error:
            raise KafkaCodecError(f"Spark failed: {_reason(str(error))}") from None
        return done

    # In the main thread, an interrupt could break off the start of the JVM, which would then keep running.
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run)
        try:
            return future.result()
        except KeyboardInterrupt:
            logging.disable(logging.CRITICAL)  # py4j would log the interrupted call
            raise
        finally:
            with _uninterrupted():
                while SparkContext._gateway is None and not future.done():
                    time.sleep(0.05)
                if ours and SparkContext._gateway is not None:
                    SparkContext._gateway.proc.kill()


def _reason(message: str) -> str:
    """The last line of a message of Spark that is no stack trace of Java; ours if there is one, as of a task."""
    lines = [line.strip().removeprefix(": ") for line in message.splitlines()]
    told = [line for line in lines if line and not _OF_TRACE.match(line)] or ["no reason given"]
    ours = [_OURS.split(line, maxsplit=1)[1] for line in told if _OURS.search(line)]
    return ours[-1] if ours else _JAVAS.sub("", told[-1], count=1)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore further interrupts while the JVM is ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
