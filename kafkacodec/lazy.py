"""Packages whose public names are imported at their first use, and modules that are: numpy above all."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

__all__ = ["at_first_use", "import_extra", "imported_later", "missing_package", "np", "pyarrow_table"]


def at_first_use(package: str, homes: Mapping[str, str], extra: str = "") -> Callable[[str], Any]:
    """The `__getattr__` of a package: it imports a public name when it is first asked for.

    Args:
        package: the package's name.
        homes: public name -> the module below the package that holds it, with a dot in front if it is beside the
            package; or "" for a module of the package itself.
        extra: what installs the optional packages that all of them need, for errors; by default each by itself.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            module, place = sys.modules[package], _CLIENTS.get(name)
            hint = f"; use {place}" if place is not None and package in _OF_CLIENTS else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}", name=name, obj=module)
        try:
            found = importlib.import_module(f".{homes[name] or name}", package)
        except ModuleNotFoundError as error:
            if error.name not in _INSTALL:
                raise
            raise _missing(error.name, extra) from None
        value = getattr(found, name) if homes[name] else found
        setattr(sys.modules[package], name, value)
        return value

    return attribute


_OF_CLIENTS = ("kafkacodec", "kafkacodec.client", "kafkacodec.client.aio")
# Names that somebody may look for in these modules -> where they are.
_CLIENTS = {
    **{f"{prefix}{name}": f"kafkacodec.client.{name}" for prefix in ("", "Kafka") for name in ("Producer", "Consumer")},
    **{f"AIOKafka{name}": f"kafkacodec.client.aio.{name}" for name in ("Producer", "Consumer")},
    **dict.fromkeys(("Admin", "AdminClient", "KafkaAdminClient"), "kafkacodec.client.Admin"),
    "AIOKafkaAdminClient": "kafkacodec.client.aio.Admin",
    **{name: f"kafkacodec.client.{name}" for name in ("NewTopic", "TopicPartition", "ShareConsumer")},
    "serve": "kafkacodec.broker.serve",
    "LogDirectory": "kafkacodec.log.LogDirectory",
}


class _Deferred:
    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def imported_later(name: str) -> Any:
    """What stands for a module, and imports it when one of its names is first asked for."""
    return _Deferred(name)


_INSTALL = {"pyarrow": "'kafkacodec[arrow]'", "pandas": "pandas", "polars": "polars", "orjson": "'kafkacodec[values]'"}


def import_extra(module: str) -> Any:
    """An optional package.

    Raises:
        ImportError: it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise _missing(module) from None


def missing_package(what: str, package: str, extra: str) -> ModuleNotFoundError:
    """The error that something, such as "reading from HDFS needs", lacks a package that an extra installs."""
    return ModuleNotFoundError(f"{what} {package}: pip install 'kafkacodec[{extra}]'", name=package)


def _missing(module: str, extra: str = "") -> ModuleNotFoundError:
    return ModuleNotFoundError(f"{module} is not installed: pip install {extra or _INSTALL[module]}", name=module)


def pyarrow_table(data: Any) -> Any:
    """An object with the Arrow interface as a ``pyarrow.Table``, as ``pyarrow.table`` makes it.

    That imports pandas wherever it is installed, which takes 0.3 s, to look whether the object is one of pandas. So do
    ``pyarrow.array`` and ``scalar``. Where pandas is not imported, it is none.

    Raises:
        ImportError: pyarrow is not installed.
    """
    pa = import_extra("pyarrow")
    if isinstance(data, pa.Table):
        return data
    if "pandas" in sys.modules:
        return pa.table(data)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data).read_all()
    return pa.Table.from_batches([pa.record_batch(data)])


# Half of the time in which a program starts: for modules that a client or a broker loads, but that seldom use it.
if TYPE_CHECKING:
    import numpy as np
else:
    np = imported_later("numpy")
