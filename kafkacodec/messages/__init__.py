"""The message classes of the Kafka protocol: one for each request, response and data schema, for all its versions.

Classes are made from schema tables on first use::

    request = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="orders")])
    body = request.encode(version=12)
    messages.MetadataRequest.decode(body, version=12) == request
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafkacodec.messages.registry import APIS, Api, by_key, message_class, message_names

if TYPE_CHECKING:
    from kafkacodec.messages import keys as keys
    from kafkacodec.messages.classes import Message, MessageStruct, build
    from kafkacodec.messages.types import *  # noqa: F403

__all__ = ["APIS", "Api", "Message", "MessageStruct", "build", "by_key", "keys", "message_class", "message_names"]


def __getattr__(name: str) -> Any:
    value: Any
    if name in ("Message", "MessageStruct", "build"):
        from kafkacodec.messages import classes

        value = getattr(classes, name)
    elif name == "keys":
        value = import_module("kafkacodec.messages.keys")
    else:
        try:
            value = message_class(name)
        except KeyError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *message_names()})
