"""Writes the API pages, a Markdown file per public module, from signatures and docstrings. argv: output directory."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

# Page -> module whose public names it lists. Submodules that need an extra are omitted if it is not installed.
PAGES = {
    "kafkacodec": "kafkacodec",
    "errors": "kafkacodec.errors",
    "log": "kafkacodec.log",
    "log-cluster-metadata": "kafkacodec.log.state.cluster_metadata",
    "log-groups": "kafkacodec.log.state.groups",
    "log-tables": "kafkacodec.log.state.tables",
    "messages": "kafkacodec.messages",
    "protocol": "kafkacodec.protocol",
    "client": "kafkacodec.client",
    "client-aio": "kafkacodec.client.aio",
    "dialects": "kafkacodec.dialects",
    "dialects-kafka07": "kafkacodec.dialects.kafka07",
    "dialects-kafka07-driver": "kafkacodec.dialects.kafka07.driver",
    "dialects-line": "kafkacodec.dialects.line",
    "dialects-rewrite": "kafkacodec.dialects.rewrite",
    "dialects-zookeeper": "kafkacodec.dialects.zookeeper",
    "spark": "kafkacodec.spark",
}


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for page, name in PAGES.items():
        text = "\n".join(_page(importlib.import_module(name)))
        (target / f"{page}.md").write_text(text + "\n")
    index = [f"- [{name}]({page}.md)" for page, name in PAGES.items()]
    (target / "README.md").write_text("# API\n\n" + "\n".join(index) + "\n")
    print(f"{len(PAGES)} pages in {target}")


def _page(module: ModuleType) -> Iterator[str]:
    yield f"# {module.__name__}\n\n{inspect.getdoc(module) or ''}\n"
    public = [getattr(module, name) for name in getattr(module, "__all__", [])]
    for name, thing in zip(getattr(module, "__all__", []), public, strict=True):
        if inspect.ismodule(thing):
            yield f"## {name}\n\nA separate module: `{thing.__name__}`.\n"
        elif inspect.isclass(thing):
            yield from _class(name, thing, public)
        elif callable(thing):
            yield f"## {name}{_signature(thing)}\n\n{_doc(thing)}\n"
        else:
            yield f"## {name}\n\n`{type(thing).__name__}`\n"


def _class(name: str, cls: type, public: list[object]) -> Iterator[str]:
    """A class with its members, including those of its bases that are not on the page."""
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    yield f"## class {name}" + (f"({bases})" if bases else "") + f"\n\n{_doc(cls)}\n"
    members: dict[str, object] = {}
    for base in cls.__mro__:
        if base is cls or (base.__module__.startswith("kafkacodec.") and base not in public):
            members = vars(base) | members
    for member, thing in sorted(members.items()):
        if member.startswith("_"):
            continue
        if isinstance(thing, property):
            yield f"### {name}.{member}\n\n{_doc(thing)}\n"
        elif inspect.isroutine(thing) or isinstance(thing, (classmethod, staticmethod)):
            function = getattr(cls, member)
            yield f"### {name}.{member}{_signature(function)}\n\n{_doc(function)}\n"


def _signature(thing: object) -> str:
    try:
        return str(inspect.signature(thing)) if callable(thing) else ""
    except (TypeError, ValueError):
        return "(...)"


def _doc(thing: object) -> str:
    """The docstring; sections and their indented entries are kept as they are written."""
    return (inspect.getdoc(thing) or "").replace("\n    ", "\n\n    ", 1)


main()
