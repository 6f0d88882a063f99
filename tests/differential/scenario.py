"""A scenario of requests to a broker: its names and connections, what it asks, and the answers as steps."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    LEADER_NOT_AVAILABLE,
    NOT_COORDINATOR,
)
from tests.broker_wire import Connection
from tests.differential.mask import Mask

NOT_READY = frozenset(
    (
        LEADER_NOT_AVAILABLE,
        COORDINATOR_LOAD_IN_PROGRESS,
        COORDINATOR_NOT_AVAILABLE,
        NOT_COORDINATOR,
        CONCURRENT_TRANSACTIONS,
    )
)
"""Errors that say "ask again": topic or coordinator not ready, the last transaction's markers not written."""
NOT_ADVERTISED = "not advertised"
SECONDS = 400  # that a scenario may take
# What clients send where a schema's default suits none.
DEFAULTS: dict[str, dict[str, Any]] = {
    "ApiVersions": {"client_software_name": "scripts", "client_software_version": "1.0"},
    "Produce": {"acks": -1, "timeout_ms": 10_000},
    "Fetch": {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20},
    "ListOffsets": {"replica_id": -1},
    "OffsetForLeaderEpoch": {"replica_id": -1},
    "JoinGroup": {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 20_000, "protocol_type": "consumer"},
    "CreateTopics": {"timeout_ms": 10_000},
    "DeleteTopics": {"timeout_ms": 10_000},
    "CreatePartitions": {"timeout_ms": 10_000},
    "DeleteRecords": {"timeout_ms": 10_000},
    "ElectLeaders": {"timeout_ms": 10_000},
    "InitProducerId": {"transactional_id": None, "transaction_timeout_ms": 60_000},
    "ShareFetch": {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500},
}


class Stop(Exception):
    """A scenario cannot go on: the broker gave no answer, or its setting could not be made.

    Attributes:
        is_answer: the broker does not advertise what is needed, which is an answer too.
    """

    is_answer = False


class NotAdvertised(Stop):
    """A version that a scenario cannot do without is not advertised."""

    is_answer = True


class Server:
    """A broker that scenarios are played against: what they have to know of it. Makes the internal topics ready.

    Args:
        address: host and port.
        directory: its data directory.
        patience: how many seconds it may take to answer, or to come to what a scenario waits for.
    """

    def __init__(self, address: str, directory: Path, patience: float = 15) -> None:
        self.address, self.directory, self.patience, self.node = address, directory, patience, -1
        self.versions: dict[int, range] = {}
        with Scenario(self, "prelude") as s:
            rows = s.ask("ApiVersions", 0, quiet=True).api_keys
            self.versions = {row.api_key: range(row.min_version, row.max_version + 1) for row in rows}
            self.node = s.ask("Metadata", 1, topics=[], quiet=True).brokers[0].node_id
            for kind in (0, 1):
                s.ask("FindCoordinator", 1, key=s.name("any"), key_type=kind, quiet=True)
            # no scenario gets the producer id 0
            s.ask("InitProducerId", 1, quiet=True, until=lambda a: a.producer_id > 0)

    def serves(self, api: str, version: int) -> bool:
        """Whether it advertises a version."""
        return not self.versions or version in self.versions.get(_key(api), ())


def _key(api: str) -> int:
    return getattr(messages, f"{api}Request").api_key


class Scenario:
    """One scenario's names, connections and answers. Every `ask` is a step unless it is `quiet`."""

    def __init__(self, server: Server, title: str) -> None:
        self.server, self.title = server, title
        self.token = secrets.token_hex(4)
        self.T = int(time.time() * 1000) - 3_600_000  # an hour ago: answers show T + n
        self.mask = Mask(self.token, self.T, server.node)
        self.answers: dict[str, Any] = {}
        self.connections: dict[str, Connection] = {}
        self.ids: dict[str, uuid.UUID] = {}
        self.sent = 0
        self.end = time.monotonic() + SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """End all connections; later requests open new ones."""
        while self.connections:
            self.connections.popitem()[1].close()

    # Names and records

    def name(self, text: str) -> str:
        """A name that no other run has; "text-~" in the answers."""
        return f"{text}-{self.token}"

    def topic(self, text: str = "t", partitions: int = 1, **configs: str) -> str:
        """A new topic, ready to be used; `_` in the configs' names stands for a dot. No step."""
        name = self.name(text)
        wanted = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        entry = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": wanted}
        made = self.ask("CreateTopics", 5, topics=[entry], quiet=True).topics[0]
        if made.error_code:
            raise Stop(f"cannot create a topic: error {made.error_code}")
        return self.ready(name, partitions)

    def ready(self, name: str, partitions: int = 1) -> str:
        """Waits until all partitions of a topic can be used, and learns its id. No step."""
        numbers = [{"partition_index": i, "timestamp": -1} for i in range(partitions)]
        known = self.ask("Metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False, quiet=True,
                         until=lambda a: len(a.topics[0].partitions) >= partitions)  # fmt: skip
        self.ids[name] = known.topics[0].topic_id
        self.mask.known[self.ids[name]] = f"<id of {name.replace(self.token, '~')}>"
        self.ask("ListOffsets", 4, topics=[{"name": name, "partitions": numbers}], quiet=True,
                 until=lambda a: not any(p.error_code for p in a.topics[0].partitions))  # fmt: skip
        return name

    def batch(self, *records: Any, at: int = 0, producer: tuple[int, int, int] = (-1, -1, -1), **options: Any) -> bytes:
        """A record batch of values or (key, value[, headers]); times are T + at, T + at + 1, …

        `producer` is its id, epoch and first sequence. `times` gives the times themselves; the rest goes to kc.encode.
        """
        times = options.pop("times", None) or [self.T + at + i for i in range(len(records))]
        rows = []
        for i, record in enumerate(records):
            key, value, *headers = record if isinstance(record, tuple) else (None, record)
            at = None if options.get("magic") == 0 else times[i]
            rows.append(kc.Record(i, at, 0, key, value, tuple(headers[0]) if headers else ()))
        number, epoch, sequence = producer
        size = sum(len(part) for row in rows for part in (row.key, row.value) if part)
        options.setdefault("batch_bytes", 16_384 + 2 * size)  # one batch, however large
        return kc.encode(rows, producer_id=number, producer_epoch=epoch, base_sequence=sequence, **options)

    # Requests

    def ask(
        self,
        api: str,
        version: int,
        /,
        *,
        on: str = "main",
        until: Callable[[Any], Any] | None = None,
        retry: frozenset[int] | tuple[int, ...] = NOT_READY,
        quiet: bool = False,
        label: str = "",
        client: str | None = "scripts",
        wait: float | None = None,
        **options: Any,
    ) -> Any:
        """Sends a request, notes the answer as a step, and returns it: a message, or None when the broker closed.

        A version that the broker does not advertise is not sent; the step says so.

        on: the name of the connection. until: ask again until this holds. retry: ask again at these error codes; both
        at most for `wait` seconds, by default the server's `patience`. hide, mine, ordered, pick: see `note`. The rest
        are fields, structs as dicts.
        """
        shape = {key: options.pop(key) for key in ("hide", "mine", "ordered", "pick") if key in options}
        step = f"{api}-v{version}{label and '-' + label}"
        if not self.server.serves(api, version):
            if quiet:
                raise NotAdvertised(f"{api} v{version} is {NOT_ADVERTISED}")
            return self.note(step, NOT_ADVERTISED)
        wait = self.server.patience if wait is None else wait
        end = time.monotonic() + wait
        while True:
            answer = self.answer(self.send(api, version, on=on, client=client, **options))
            again = answer is not None and (
                bool(retry and set(retry) & _error_codes(answer.to_dict())) if not until else not _holds(until, answer)
            )
            if not again or time.monotonic() > end:
                break
            time.sleep(0.05)
        if quiet and answer is None:
            raise Stop(f"connection closed at {api} v{version}")
        if not quiet:
            self.note(step, "closed" if answer is None else answer.to_dict(), **({} if answer is None else shape))
        return answer

    def send(
        self, api: str, version: int, /, *, on: str = "main", client: str | None = "scripts", **fields: Any
    ) -> Any:
        """Sends a request only; `answer` or `finish` takes what it returns."""
        if time.monotonic() > self.end:
            raise Stop(f"not done within {SECONDS} s")
        if not self.server.serves(api, version):
            raise NotAdvertised(f"{api} v{version} is {NOT_ADVERTISED}")
        request = getattr(messages, api + "Request").from_dict({**DEFAULTS.get(api, {}), **fields})
        self.sent += 1
        self.connection(on).write(protocol.encode_request(request, version, self.sent, client))
        return on, api, version, self.sent

    def answer(self, sent: Any, wait: float | None = None) -> Any:
        """The answer to what was sent on a connection; None, and a new connection next time, when it was closed."""
        on, api, version, number = sent
        wait = self.server.patience if wait is None else wait
        try:
            frame = self.connection(on).frame(wait)
        except TimeoutError:
            raise Stop(f"no answer to {api} v{version} within {wait} s") from None
        if frame is None:
            self.connections.pop(on).close()
            return None
        header, answer = protocol.decode_response(frame, _key(api), version)
        if header.correlation_id != number:
            raise Stop(f"the answer to {api} v{version} has correlation id {header.correlation_id}, not {number}")
        return answer

    def finish(self, sent: Any, label: str = "", **shape: Any) -> Any:
        """The answer to what was sent, as a step."""
        answer = self.answer(sent)
        name = f"{sent[1]}-v{sent[2]}{label and '-' + label}"
        self.note(name, "closed" if answer is None else answer.to_dict(), **({} if answer is None else shape))
        return answer

    def raw(
        self, label: str, data: bytes, answer: str = "", version: int = 0, *, seconds: float = 15, **shape: Any
    ) -> None:
        """Sends bytes on a connection of their own. The step is "closed", "no answer", or the answer: in hex, or as
        the message `answer` of this version."""
        connection = Connection(self.server.address)
        connection.write(data)
        try:
            frame = connection.frame(seconds)
        except TimeoutError:
            self.note(label, "no answer")
        else:
            if frame is not None and answer:
                key = _key(answer)
                self.note(label, protocol.decode_response(frame, key, version)[1].to_dict(), **shape)
            else:
                self.note(label, "closed" if frame is None else frame[4:].hex())
        connection.close()

    def connection(self, on: str) -> Connection:
        """The connection of this name, opened when it is first wanted."""
        if on not in self.connections:
            self.connections[on] = Connection(self.server.address)
        return self.connections[on]

    def note(
        self,
        label: str,
        value: Any,
        *,
        hide: tuple[str, ...] = (),
        mine: bool = False,
        ordered: bool = False,
        pick: Callable[[Any], Any] | None = None,
    ) -> None:
        """A step. hide: fields that do not count. mine: only list items with this run's names. ordered: lists as they
        are. pick: what of the normalised answer counts."""
        if mine:
            value = {
                k: [i for i in v if self.token in json.dumps(i, default=str)] if isinstance(v, list) else v
                for k, v in value.items()
            }
        value = self.mask(value, hide, ordered)
        if pick:
            try:
                value = pick(value)
            except (LookupError, TypeError, AttributeError):
                value = {"not of the usual shape": value}
        self.answers[f"{self.title}/{len(self.answers) + 1:02}-{label}"] = value

    def segments(self, label: str, topic: str, partition: int = 0) -> None:
        """A step: the segments of a partition in the data directory, as base offset and size."""
        files = (self.server.directory / f"{topic}-{partition}").glob("*.log")
        self.note(f"segments-{label}", [[int(file.stem), file.stat().st_size] for file in files])

    # The requests that occur most

    def produce(self, topic: str, *records: Any, version: int = 9, partition: int = 0, **options: Any) -> Any:
        """Produces records as one batch (options as for `batch`), or the bytes `data` as they are."""
        ours = {
            key: options.pop(key)
            for key in ("at", "producer", "codec", "magic", "is_transactional", "times")
            if key in options
        }
        data = options.pop("data") if "data" in options else self.batch(*records, **ours)
        rows = [{"index": partition, "records": data}]
        return self.ask(
            "Produce", version, topic_data=[{**self.key(topic, version >= 13), "partition_data": rows}], **options
        )

    def fetch(self, topic: str, offset: int = 0, *, version: int = 12, partition: int = 0, **options: Any) -> Any:
        ours = {key: options.pop(key) for key in ("current_leader_epoch", "partition_max_bytes", "last_fetched_epoch")
                if key in options}  # fmt: skip
        row = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **ours}
        entry = {**self.key(topic, version >= 13, "topic"), "partitions": [row]}
        return self.ask("Fetch", version, topics=[entry], **options)

    def offset(self, topic: str, timestamp: int, *, version: int = 7, partition: int = 0, **options: Any) -> Any:
        ours = {key: options.pop(key) for key in ("current_leader_epoch", "max_num_offsets") if key in options}
        row = {"partition_index": partition, "timestamp": timestamp, **ours}
        return self.ask("ListOffsets", version, topics=[{"name": topic, "partitions": [row]}], **options)

    def key(self, topic: str, by_id: bool, field: str = "name") -> dict[str, Any]:
        """How a topic is named in a request: by its id or by its name."""
        return {"topic_id": self.ids[topic]} if by_id else {field: topic}


def _holds(until: Callable[[Any], Any], answer: Any) -> bool:
    try:
        return bool(until(answer))
    except (LookupError, TypeError, AttributeError):  # an answer without what is asked about
        return False


def _error_codes(value: Any) -> set[int]:
    if isinstance(value, list):
        return set().union(*map(_error_codes, value)) if value and isinstance(value[0], dict) else set()
    found: set[int] = set()
    for key, part in value.items():
        if key.endswith("error_code"):
            found.add(part)
        elif isinstance(part, (dict, list)):
            found |= _error_codes(part)
    return found
