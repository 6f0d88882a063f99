"""The error codes of Kafka's brokers, one class per code, made from a table (``broker_errors.txt``).

The names of this module are offered by `kafkacodec.errors`, which loads it on first use.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from kafkacodec.errors import BrokerError

__all__ = ["CLASSES", "CODES", "error"]


def _class_name(name: str) -> str:
    """``NOT_CONTROLLER`` becomes NotControllerError."""
    camel = "".join(word.capitalize() for word in name.split("_"))
    return camel if camel.endswith("Error") else camel + "Error"


def _make(code: int, name: str, class_name: str, words: list[str]) -> type[BrokerError]:
    attributes = {
        "__module__": "kafkacodec.errors",
        "__doc__": f"Error code {code}, {name}.",
        "code": code,
        "name": name,
        "retriable": "retriable" in words,
        "stale_metadata": "stale-metadata" in words,
    }
    return type(class_name, (BrokerError,), attributes)


def _read_table() -> dict[int, type[BrokerError]]:
    classes = {}
    for line in Path(__file__).with_suffix(".txt").read_text("ascii").splitlines():
        if not line.startswith("#"):
            code, name, *words = line.split()
            classes[int(code)] = _make(int(code), name, _class_name(name), words)
    return classes


# The class of every known code.
CODES: dict[int, type[BrokerError]] = _read_table()
CLASSES: dict[str, type[BrokerError]] = {cls.__name__: cls for cls in CODES.values()}


@lru_cache(maxsize=1024)
def _unknown(code: int) -> type[BrokerError]:
    return _make(code, f"UNKNOWN_CODE_{code}", "UnknownCodeError", [])


def error(code: int) -> type[BrokerError]:
    """The exception class of an error code, with ``code``, ``name``, ``retriable`` and ``stale_metadata``.

    A code that is not known gets a class of its own, which is neither retriable nor a sign of stale metadata.
    Code 0 (NONE) has a class too, so that every code of a response has a name.
    """
    return CODES.get(code) or _unknown(code)
