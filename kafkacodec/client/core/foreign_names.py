"""Methods of other clients that the clients here do not have: what replaces them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import getmembers, isasyncgenfunction, iscoroutinefunction
from typing import Any, Final, NoReturn, TypeVar

from kafkacodec.signatures import suggests_options

__all__ = ["Elsewhere", "knows"]

Type = TypeVar("Type", bound=type)

_CLOSE: Final = "close()"
_START: Final = "not needed: the first use starts it, and `with` closes it"
_TOPICS: Final = "Admin.list_topics(), or Admin.describe_topics(topics)"
_READ: Final = "getmany(timeout=1) in seconds, or an iteration over records; both raise errors"

_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "Producer": {
        "produce": "send(topic, value, key=...), and add_done_callback(f) of what it returns",
        "poll": "not needed: callbacks run in the client's thread or event loop",
        "send_and_wait": "send(topic, value), and result() or await of what it returns",
        "list_topics": _TOPICS,
        "start": _START,
        "stop": _CLOSE,
    },
    "Consumer": {
        "reader": "columns(), an asynchronous iterator over tables: a RecordBatchReader would block the event loop",
        "poll": _READ,
        "consume": "getmany(timeout=1, max_records=1000)",
        "getone": "an iteration over records, or await anext(consumer)",
        "get_watermark_offsets": "beginning_offsets([(topic, 0)]) and end_offsets([(topic, 0)])",
        "highwater": "end_offsets([(topic, 0)]), or lag()",
        "partitions_for_topic": "partitions_for(topic)",
        "commit_async": "commit(wait=False)",
        "store_offsets": "not needed: records count as processed when the application asks for more",
        "topics": _TOPICS,
        "list_topics": _TOPICS,
        "start": _START,
        "stop": _CLOSE,
    },
    "Admin": {
        "describe_topic": "describe_topics(topics)",
        "list_consumer_groups": "list_groups()",
        "describe_consumer_groups": "describe_groups(names)",
        "delete_consumer_groups": "delete_groups(names)",
        "list_consumer_group_offsets": "list_group_offsets(group)",
        "alter_consumer_group_offsets": "alter_group_offsets(group, offsets)",
        "poll": "not needed: calls wait",
        "start": _START,
        "stop": _CLOSE,
    },
    "ShareConsumer": {
        "poll": _READ,
        "consume": "getmany(timeout=1, max_records=1000)",
        "start": _START,
        "stop": _CLOSE,
    },
}
"""By class and method, as the page "Comparison" has them."""


class Elsewhere:
    """Stands for a method of another client: using it is an AttributeError that names its replacement.

    Not a `__getattr__` of the clients, which would make every use of an attribute slower.
    """

    def __init__(self, owner: str, name: str, instead: str) -> None:
        self._text = f"{owner} has no method {name!r}; {'' if instead.startswith('not') else 'use '}{instead}"
        self._name = name

    def __get__(self, client: Any, owner: type) -> NoReturn:
        raise AttributeError(self._text, name=self._name, obj=client)


_UNCHECKED: Final = frozenset({"send"})
"""Called for each record. They refuse wrong arguments themselves."""


def _is_asyncio(member: object) -> bool:
    return iscoroutinefunction(member) or isasyncgenfunction(member)


def knows(kind: str) -> Callable[[Type], Type]:
    """Make a client's class explain the names that a kind of clients has elsewhere, and wrong options of coroutines."""

    def decorate(client: Type) -> Type:
        own: Any = client.__dir__
        is_asyncio = _is_asyncio(getattr(client, "close", None))
        for name, method in getmembers(client, _is_asyncio):
            if not name.startswith("_") and name not in _UNCHECKED:
                setattr(client, name, suggests_options(method))
        missing = {name: why for name, why in _NAMES.get(kind, {}).items() if not hasattr(client, name)}
        statement = "`async with`" if is_asyncio else "`with`"
        for name, instead in missing.items():
            setattr(client, name, Elsewhere(client.__name__, name, instead.replace("`with`", statement)))

        def names(self: Any) -> list[str]:
            return [name for name in own(self) if name not in missing]

        client.__dir__ = names  # type: ignore[method-assign, assignment]
        return client

    return decorate
