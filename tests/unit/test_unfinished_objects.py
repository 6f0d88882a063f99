"""Objects whose constructor raised are collected in silence: their finalizers find attributes missing."""

from __future__ import annotations

import contextlib
import gc
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import kafkacodec

NO_MODULES = ("__main__", "libkafkacodec")  # a command, and the shared library of C


def with_finalizers() -> Iterator[type]:
    """The classes of all modules that have a `__del__` in Python."""
    for found in pkgutil.walk_packages(kafkacodec.__path__, "kafkacodec."):
        if not found.name.endswith(NO_MODULES):
            module = importlib.import_module(found.name)
            for cls in vars(module).values():
                end = getattr(cls, "__del__", None)
                if isinstance(cls, type) and cls.__module__ == module.__name__ and is_ours(end):
                    yield cls


def is_ours(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("kafkacodec")


def test_an_object_whose_constructor_has_not_run_is_collected_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    found = list(with_finalizers())
    for cls in found:
        with contextlib.suppress(TypeError):  # abstract ones
            cls.__new__(cls)
    gc.collect()
    monkeypatch.undo()
    assert len(found) >= 10
    assert [str(event.exc_value) for event in raised] == []
