"""The API keys by name: ``keys.FETCH`` is 1. Made from the index of the schema tables."""

from __future__ import annotations

from kafkacodec.messages.model import snake_case
from kafkacodec.messages.registry import APIS

_NAMES = snake_case("\n".join([api.name for api in APIS.values()])).upper().split("\n")  # a tenth of one by one
_KEYS = dict(zip(_NAMES, APIS, strict=True))

__all__ = list(_KEYS)

globals().update(_KEYS)
