"""The known APIs and the message classes by name; a schema table is read on first use of one of its classes."""

from __future__ import annotations

import os.path
from functools import cache
from typing import TYPE_CHECKING

from kafkacodec.datatypes import NamedTuple
from kafkacodec.messages.model import version_range

if TYPE_CHECKING:
    from kafkacodec.messages.classes import Message

__all__ = ["APIS", "Api", "by_key", "message_class", "message_names", "names_in"]

_SCHEMAS = os.path.join(os.path.dirname(__file__), "schema")
_MODULE = "kafkacodec.messages"


class Api(NamedTuple):
    """One API of the protocol: its key, its name and the supported versions."""

    key: int
    name: str
    valid_versions: range

    @property
    def request(self) -> type[Message]:
        """The request class."""
        return message_class(self.name + "Request")

    @property
    def response(self) -> type[Message]:
        """The response class."""
        return message_class(self.name + "Response")


def _text(file: str) -> str:
    with open(os.path.join(_SCHEMAS, file), encoding="ascii") as opened:
        return opened.read()


def _read_index() -> tuple[dict[int, Api], dict[str, str]]:
    """The APIs by key, and the table's file name by class name."""
    apis: dict[int, Api] = {}
    files: dict[str, str] = {}
    for line in _text("index.txt").splitlines():
        first, *names = line.split()
        if first.isdigit():
            api = apis[int(first)] = Api(int(first), names[0], version_range(names[1]))
            files[api.name + "Request"] = files[api.name + "Response"] = f"{api.key:02}_{api.name}.kmsg"
        elif first != "#":
            files.update(dict.fromkeys(names, f"{first}.kmsg"))
    return apis, files


APIS, _FILES = _read_index()
_classes: dict[str, type[Message]] = {}
_tables: dict[str, dict[str, type[Message]]] = {}


def message_names() -> list[str]:
    """The names of all message classes."""
    return list(_FILES)


def names_in(table: str) -> list[str]:
    """The names of the data schemas in one table, such as ``group`` or ``metadata``."""
    return [name for name, file in _FILES.items() if file == f"{table}.kmsg"]


def message_class(name: str) -> type[Message]:
    """The class with this name. Raises KeyError if there is none."""
    if name not in _classes:
        file = _FILES[name]
        # Threads may read a table at the same time; the classes of one of them are those of all.
        _classes.update(_tables.get(file) or _tables.setdefault(file, _read_table(file)))
    return _classes[name]


def _read_table(file: str) -> dict[str, type[Message]]:
    from kafkacodec.messages.classes import build

    return build(_text(file), _MODULE)


@cache
def by_key(api_key: int) -> tuple[type[Message], type[Message]]:
    """The request class and the response class of an API. Raises KeyError for an unknown key."""
    api = APIS.get(api_key)
    if api is None:
        raise KeyError(f"unknown API key {api_key!r}")
    return api.request, api.response
