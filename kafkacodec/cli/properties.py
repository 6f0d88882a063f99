"""Files of properties, as Java's and librdkafka's clients are configured by."""

from __future__ import annotations

import re

__all__ = ["read_properties"]

# A name and a value, of which a JAAS configuration has several: username="alice" password="...";
_JAAS = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))')
_JAAS_OPTIONS = {"username": "sasl.username", "password": "sasl.password"}


def read_properties(text: str) -> dict[str, str]:
    """The properties of a file: ``name=value``, with ``#`` and ``!`` for comments and ``\\`` at the end for more lines.

    User and password in ``sasl.jaas.config`` become ``sasl.username`` and ``sasl.password``.

    Raises:
        ValueError: a line is not a property; the message has its number.
    """
    found: dict[str, str] = {}
    start = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = start + line.lstrip()
        start = ""
        if not line.strip() or line[0] in "#!":
            continue
        if line.endswith("\\"):
            start = line[:-1]
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"line {number}: not name=value")
        found[name.strip()] = value.strip()
    jaas = found.pop("sasl.jaas.config", None)
    return found if jaas is None else {**_jaas(jaas), **found}


def _jaas(text: str) -> dict[str, str]:
    values = {name: quoted.replace('\\"', '"') or plain for name, quoted, plain in _JAAS.findall(text)}
    return {option: values[name] for name, option in _JAAS_OPTIONS.items() if name in values}
