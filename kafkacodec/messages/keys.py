"""The API keys by name: ``keys.FETCH`` is 1. Made from the index of the schema tables."""

from __future__ import annotations

from kafkacodec.messages.model import snake_case
from kafkacodec.messages.registry import APIS

_KEYS = {snake_case(api.name).upper(): api.key for api in APIS.values()}

__all__ = list(_KEYS)

globals().update(_KEYS)
