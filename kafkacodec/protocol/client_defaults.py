"""Requests with the defaults of clients, where these differ from Kafka's schemas.

A message class has the defaults of Kafka's schemas, so that bytes and JSON mean the same as in Kafka. Some of them suit
no client: Produce has acks 0 (no response), ListOffsets replica id 0 (the follower on broker 0), OffsetForLeaderEpoch
replica id -2 (a consumer for debugging, which may read above the high watermark).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafkacodec.messages import APIS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkacodec.messages import Message

__all__ = ["client_request"]

Request = TypeVar("Request", bound="Message")

# acks -1: all replicas in sync; replica_id -1: a consumer. Fetch has replica id -1 in the schema.
_CLIENT_DEFAULTS: Final[Mapping[str, Mapping[str, int]]] = {
    "ProduceRequest": {"acks": -1},
    "ListOffsetsRequest": {"replica_id": -1},
    "OffsetForLeaderEpochRequest": {"replica_id": -1},
}


def client_request(request: type[Request], /, **fields: Any) -> Request:
    """A request as clients send it: acks -1 in Produce, replica_id -1 in ListOffsets and OffsetForLeaderEpoch.

    Args:
        request: the class of the request.
        fields: its fields, as for its constructor; the others have the defaults of clients, or of the schema.

    Raises TypeError for a class that is not a request's and for an unknown field.
    """
    key = getattr(request, "api_key", None)
    api = None if key is None else APIS.get(key)
    if api is None or request is not api.request:
        raise TypeError(f"not the class of a request: {getattr(request, '__name__', request)!s}")
    return request(**{**_CLIENT_DEFAULTS.get(request.__name__, {}), **fields})
