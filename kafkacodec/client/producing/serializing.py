"""Keys and values as the serializers of a producer make them."""

from __future__ import annotations

from typing import Any

from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.questions import answering

__all__ = ["serialized", "serialized_aside"]


def serialized(settings: ProducerSettings, key: Any, value: Any) -> tuple[Any, Any]:
    """Key and value as the serializers make them."""
    if settings.key_serializer is not None:
        key = settings.key_serializer(key)
    if settings.value_serializer is not None:
        value = settings.value_serializer(value)
    return key, value


async def serialized_aside(settings: ProducerSettings, key: Any, value: Any) -> tuple[Any, Any]:
    """The same. What serializers ask another machine is asked in a thread."""
    if settings.key_serializer is not None:
        key = await answering(settings.key_serializer, key)
    if settings.value_serializer is not None:
        value = await answering(settings.value_serializer, value)
    return key, value
