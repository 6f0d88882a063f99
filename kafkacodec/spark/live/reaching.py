"""A check that a broker can be connected to, which finds a wrong address in seconds, long before a client gives up."""

from __future__ import annotations

import math
import os
import queue
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafkacodec.errors import KafkaCodecError
from kafkacodec.net.addresses import addresses

__all__ = ["SECONDS", "BrokerUnavailable", "check_reachable", "why_unreachable"]

SECONDS: Final = 5.0
"""How long connecting may take, with all tries."""

TRIES: Final = 3
WAIT: Final = 1.0
"""How often to try, and the seconds between two tries, as of a source without other options."""


class BrokerUnavailable(KafkaCodecError):
    """The brokers do not answer, or refuse this client. The message says which and why."""


def check_reachable(client: Mapping[str, Any], *, tries: int = TRIES, wait: float = WAIT) -> None:
    """Find out on the driver, before a job starts, whether a client could connect to any of its servers.

    Args:
        client: the client's options, by the names of its arguments.
        tries, wait: as in `why_unreachable`.

    Raises:
        BrokerUnavailable: it could not.
    """
    limit = min(SECONDS, client.get("default_api_timeout_ms", math.inf) / 1000)
    given = client["bootstrap_servers"]
    reason = why_unreachable(addresses(given), tries=tries, wait=wait, seconds=limit)
    if reason is not None:
        raise BrokerUnavailable(f"kafka.bootstrap.servers: {given}: no broker can be connected to: {reason}")


def why_unreachable(
    servers: Sequence[tuple[str, int]], *, tries: int, wait: float, seconds: float = SECONDS
) -> str | None:
    """The reason why none of these servers accepts a TCP connection; None as soon as one does.

    Args:
        servers: hosts and ports, which are tried at the same time.
        tries: how often.
        wait: seconds between two tries.
        seconds: for all of it.
    """
    deadline = time.monotonic() + seconds
    while (reasons := _failures(servers, deadline)) is not None:
        tries -= 1
        if tries <= 0 or time.monotonic() + wait >= deadline:
            silent = f"no answer within {seconds:g} s"
            return "; ".join(f"{place[0]}:{place[1]}: {reasons.get(place, silent)}" for place in servers)
        time.sleep(wait)
    return None


def _failures(servers: Sequence[tuple[str, int]], deadline: float) -> dict[tuple[str, int], str] | None:
    """Why servers could not be connected to, of those that failed by then; None if one could."""
    outcomes: queue.SimpleQueue[tuple[tuple[str, int], str | None]] = queue.SimpleQueue()

    def dial(server: tuple[str, int]) -> None:
        try:
            socket.create_connection(server, timeout=max(0.001, deadline - time.monotonic())).close()
            outcomes.put((server, None))
        except TimeoutError:
            pass
        except OSError as error:
            outcomes.put((server, _reason(error)))
        except UnicodeError:  # of encoding a name for DNS
            outcomes.put((server, "not a host name"))

    for server in servers:
        threading.Thread(target=dial, args=(server,), daemon=True).start()
    failures: dict[tuple[str, int], str] = {}
    while len(failures) < len(set(servers)):
        try:
            server, reason = outcomes.get(timeout=max(0, deadline - time.monotonic()))
        except queue.Empty:
            break
        if reason is None:
            return None
        failures[server] = reason
    return failures


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror) or not error.errno:
        return (error.strerror or str(error)).lower()
    return os.strerror(error.errno).lower()
