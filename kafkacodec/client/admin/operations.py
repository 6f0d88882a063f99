"""The base of the calls of all subjects: running jobs, errors of several items, checking arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from kafkacodec import messages
from kafkacodec.arguments import meant, require_int, require_text
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.admin.job import Ask, Job
from kafkacodec.client.checks import by_partition, partition_keys
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, Answer, Coordinator
from kafkacodec.errors import (
    GROUP_ID_NOT_FOUND,
    UNKNOWN_TOPIC_OR_PARTITION,
    AuthenticationFailed,
    BrokerError,
    ItemErrors,
    KafkaCodecError,
    UnsupportedVersion,
)
from kafkacodec.messages.keys import METADATA
from kafkacodec.named_rows import NamedRows, RowsByKey, Shape

if TYPE_CHECKING:
    from kafkacodec.client.core.cluster import Cluster
    from kafkacodec.client.options import ClientSettings

__all__ = [
    "PARTITION",
    "Operations",
    "anywhere",
    "as_rows",
    "at_broker",
    "by_topic",
    "group_coordinator",
    "group_name",
    "mapped",
    "pairs",
    "several",
]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")

Call: TypeAlias = Callable[P, Coroutine[Any, Any, V]]

PARTITION: Final = {"topic": str, "partition": int}
"""The columns of a `TopicPartition`."""

_MOST_MS: Final = 2**31 - 1
_OF_ALL: Final = (UnsupportedVersion, AuthenticationFailed)


class Operations:
    """The base class of the admin client's calls. The client runs jobs in its network."""

    _settings: ClientSettings

    @property
    def _cluster(self) -> Cluster:
        """The cluster's metadata."""
        raise NotImplementedError

    async def _run(self, job: Job[Any, Any]) -> None:
        """Run a job until it is done."""
        raise NotImplementedError

    def _now(self) -> float:
        """The time of the network's clock, in ms."""
        raise NotImplementedError

    async def _each(self, ask: Ask[K, V], keys: Iterable[K], timeout_ms: int | None, what: str) -> dict[K, V]:
        """Return the result of each item, in the given order.

        Raises ItemErrors if some items fail, with `what` to describe them; or the error itself if the brokers cannot
        execute it for any item.
        """
        keys = list(keys)
        job = self._job(ask, keys, timeout_ms)
        await self._run(job)
        await self._suggest(job.errors)
        ordered = {key: job.results[key] for key in keys if key in job.results}
        absent = self._cluster.absence.reason
        if absent is not None and absent in job.errors.values():
            raise absent.with_traceback(None)
        if job.errors and all(isinstance(found, _OF_ALL) for found in job.errors.values()) and not ordered:
            raise next(iter(job.errors.values()))
        if job.errors:
            total = len(ordered) + len(job.errors)
            some = f"{len(job.errors)} of {total} {what}" if total > 1 else f"the {_singular(what)}"
            raise ItemErrors(some, job.errors, ordered)
        return ordered

    async def _one(self, ask: Ask[K, V], key: K, timeout_ms: int | None) -> V:
        """Return the result of one item, or raise its error."""
        job = self._job(ask, [key], timeout_ms)
        await self._run(job)
        await self._suggest(job.errors)
        for found in job.errors.values():
            raise found.with_traceback(None)
        return job.results[key]

    async def list_topics(self) -> Mapping[str, Any]:
        """The topics by name."""
        raise NotImplementedError

    async def list_groups(self) -> Mapping[str, Any]:
        """The groups by id."""
        raise NotImplementedError

    async def _suggest(self, errors: dict[Any, Exception]) -> None:
        """Add the most similar name to errors about a topic or group that does not exist."""
        for code, listed in ((UNKNOWN_TOPIC_OR_PARTITION, self.list_topics), (GROUP_ID_NOT_FOUND, self.list_groups)):
            wrong = {key: name for key, found in errors.items() if _code(found) == code and (name := _name(key))}
            with suppress(KafkaCodecError):
                known = await listed() if wrong else {}
                for key, name in wrong.items():
                    similar = meant(name, known) if name not in known else ""
                    if similar:
                        errors[key] = type(errors[key])(f"{str(errors[key]).rstrip('.')}; {similar}")

    async def _broker_ids(self, timeout_ms: int | None) -> list[int]:
        """The ids of the brokers in the cluster."""

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, list[int]]]:
            return [(keys[0], [broker.node_id for broker in answer.message.brokers])]

        def request(keys: list[str], version: int) -> Any:
            return messages.MetadataRequest(topics=[])

        return await self._one(Ask(api_key=METADATA, request=request, read=read, place=anywhere), "", timeout_ms)

    def _broker_timeout(self, timeout_ms: int | None) -> int:
        """The time that a broker may spend on a request so that its answer arrives in time."""
        return min(self._timeout(timeout_ms), self._settings.request_timeout_ms)

    def _timeout(self, timeout_ms: int | None) -> int:
        if timeout_ms is None:
            return self._settings.default_api_timeout_ms
        require_int("timeout_ms", timeout_ms, 0, _MOST_MS)
        return timeout_ms

    def _job(self, ask: Ask[K, V], keys: Iterable[K], timeout_ms: int | None) -> Job[K, V]:
        settings = self._settings
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        deadline = self._now() + self._timeout(timeout_ms)
        return Job(ask, keys, self._cluster, deadline, backoff, settings.request_timeout_ms)


class _AsRows(Protocol):
    """Decorates a call, whose result becomes a table."""

    @overload
    def __call__(self, call: Call[P, dict[K, V]]) -> Call[P, RowsByKey[K, V]]: ...
    @overload
    def __call__(self, call: Call[P, list[V]]) -> Call[P, NamedRows[V]]: ...


def as_rows(
    row: Any, *, keys: Mapping[str, Any] | None = None, inner: Mapping[str, Any] | None = None, cell: str = ""
) -> _AsRows:
    """Decorates calls that return a dict or a list: it is a table in notebooks, with `to_arrow` and its siblings.

    Arguments are those of `Shape`; of a list, `row` is the class of its items.
    """
    shape = Shape(row, keys or {}, inner or {}, cell)

    def decorate(call: Any) -> Any:
        @wraps(call)
        async def tabular(*arguments: Any, **options: Any) -> Any:
            found = await call(*arguments, **options)
            return RowsByKey(found, shape) if isinstance(found, dict) else NamedRows(found, row)

        kind = call.__annotations__["return"]
        name, bracket, parts = kind.partition("[")
        call.__annotations__["return"] = {"dict": "RowsByKey", "list": "NamedRows"}[name] + bracket + parts
        return tabular

    return decorate


def _code(found: Exception) -> int | None:
    return found.code if isinstance(found, BrokerError) else None


def _name(key: Any) -> str | None:
    """The topic or group that an item is about."""
    name = key if isinstance(key, str) else getattr(key, "topic", None) or getattr(key, "name", None)
    return name if isinstance(name, str) else None


def anywhere(key: Any) -> Any:
    """The destination of items that any broker can handle."""
    return ANY


def at_broker(key: Any) -> Any:
    """The destination of items that are broker ids."""
    return key


def group_coordinator(group: str) -> Coordinator:
    """The destination of a group: its coordinator."""
    return Coordinator("group", group)


def group_name(group: Any) -> str:
    """The id of one group. Raises TypeError."""
    return require_text("group", group)


def several(name: str, values: Any, kinds: tuple[type, ...] = (str,)) -> list[Any]:
    """A list from one name or several. Raises TypeError if it is neither, or one is not of these kinds."""
    if isinstance(values, kinds):
        return [values]
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a name or several, not {type(values).__name__}")
    found = list(values)
    wanted = " or ".join("text" if kind is str else kind.__name__ for kind in kinds)
    for value in found:
        if not isinstance(value, kinds):
            raise TypeError(f"each of {name} must be {wanted}, not {value!r}")
    return found


def pairs(partitions: Any) -> list[TopicPartition]:
    """Partitions as `TopicPartition`. Raises TypeError, ValueError."""
    return [TopicPartition(*key) for key in partition_keys(partitions)]


def mapped(name: str, values: Mapping[tuple[str, int], V]) -> dict[TopicPartition, V]:
    """A mapping with `TopicPartition` keys. Raises TypeError, ValueError."""
    return {TopicPartition(*key): value for key, value in by_partition(name, values).items()}


def by_topic(keys: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions of each topic, grouped as in most requests."""
    found: dict[str, list[int]] = {}
    for topic, partition in keys:
        found.setdefault(topic, []).append(partition)
    return found


_SAID: Final = re.compile(r"(.+?)s (were|could|did|failed|got|have|kept)(.*)")
_VERBS: Final = {"were": "was", "have": "has"}


def _singular(what: str) -> str:
    """Of one item what is said of several, such as "topics were not created"."""
    noun, verb, rest = _SAID.fullmatch(what).groups()  # type: ignore[union-attr]
    return f"{noun} {_VERBS.get(verb, verb)}{rest.replace(' their ', ' its ')}"
