"""Hooks of mkdocs: pages and programs of the site that are not in docs/, and links that only a checkout has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, get_origin

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from kafkacodec.messages.classes import MessageStruct

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
EXAMPLES = "examples"
FOLDERS = ("client", "protocol", "dialects")
# Every module with public names.
API = (
    "kafkacodec",
    "kafkacodec.errors",
    "kafkacodec.log",
    "kafkacodec.values",
    "kafkacodec.client",
    "kafkacodec.client.aio",
    "kafkacodec.broker",
    "kafkacodec.broker.aio",
    "kafkacodec.spark",
    "kafkacodec.messages",
    "kafkacodec.messages.stored",
    "kafkacodec.protocol",
    "kafkacodec.dialects",
    "kafkacodec.dialects.kafka07",
    "kafkacodec.dialects.kafka07.driver",
    "kafkacodec.dialects.line",
    "kafkacodec.dialects.rewrite",
    "kafkacodec.dialects.zookeeper",
)
ANCHOR = re.compile(r'id="(kafkacodec[^"]*)"')
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(((?:\.\./)+|docs/)([^)#\s]+)(#[^)]*)?\)")


def on_config(config: Any) -> Any:
    """The navigation names the pages of folders one by one."""
    for entry in config.nav:
        ((title, pages),) = entry.items()
        if pages in FOLDERS:
            found = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs" / pages).glob("*.md"))
            entry[title] = sorted(found, key=lambda page: not page.endswith("README.md"))
        elif pages == "api":
            entry[title] = [{module: f"api/{module}.md"} for module in API]
    return config


def on_files(files: Files, config: Any) -> Files:
    """The pages of the API, and those of the project beside docs/."""
    for module in API:
        files.append(File.generated(config, f"api/{module}.md", content="\n".join(_api(module))))
    for name in OUTSIDE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    for path in sorted((ROOT / EXAMPLES).iterdir()):
        if path.is_file():
            files.append(File.generated(config, f"{EXAMPLES}/{path.name}", content=path.read_bytes()))
    return files


def _api(module: str) -> Iterator[str]:
    """A page with each public name of a module; mkdocstrings fails at a name that it does not find in the sources."""
    yield f"# {module}\n"
    loaded = import_module(module)
    yield f"::: {module}\n    options: {{members: [], show_root_heading: false}}\n"
    for name in loaded.__all__:
        thing = getattr(loaded, name)
        if isinstance(thing, ModuleType):
            shown = f"[`{thing.__name__}`]({thing.__name__}.md)" if thing.__name__ in API else f"`{thing.__name__}`"
            yield f"## {name}\n\nA module: {shown}.\n"
        elif not callable(thing) or get_origin(thing) is not None:
            kind = str(thing).replace("typing.", "") if get_origin(thing) is not None else type(thing).__name__
            yield f"## {name}\n\n`{kind}`\n"
        else:
            yield f"::: {module}.{name}\n    options: {{show_root_heading: true, show_root_full_path: false}}\n"


def on_post_build(config: Any) -> None:
    """Fail if a public name, or a method of one, has no place on its page."""
    pages = {module: (Path(config.site_dir) / "api" / f"{module}.html").read_text() for module in API}
    lacking = [name for module, page in pages.items() for name in without_anchor(module, set(ANCHOR.findall(page)))]
    if lacking:
        raise PluginError(f"public names without a place on the site: {', '.join(lacking)}")


def without_anchor(module: str, anchors: set[str]) -> Iterator[str]:
    """The public names of a module, and the methods of its classes, that are not among the anchors of its page."""
    loaded = import_module(module)
    for name in loaded.__all__:
        thing, place = getattr(loaded, name), f"{module}.{name}"
        if isinstance(thing, ModuleType) or not callable(thing) or get_origin(thing) is not None:
            continue
        if place not in anchors:
            yield place
        elif isinstance(thing, type):
            yield from (each for each in methods(place, thing) if each not in anchors)


def methods(place: str, thing: type) -> Iterator[str]:
    """The public methods and properties of a class that this package documents.

    Not those of messages: all have the ones of `kafkacodec.messages.Message`.
    """
    if issubclass(thing, MessageStruct):
        return
    for owner in thing.__mro__:
        if owner.__module__.startswith("kafkacodec"):
            for name, member in vars(owner).items():
                found = isinstance(member, (FunctionType, classmethod, staticmethod, property))
                if found and not name.startswith("_") and member.__doc__:
                    yield f"{place}.{name}"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to pages outside docs/ lead to their copies; those to other files of the repository are text."""
    beside = page.file.src_uri in OUTSIDE or page.file.src_uri.startswith(f"{EXAMPLES}/")
    here = ROOT / page.file.src_uri if beside else ROOT / "docs" / page.file.src_uri

    def inside(link: re.Match[str]) -> str:
        text, up, path, anchor = link.groups()
        target = (here.parent / (up + path)).resolve()
        if target.is_relative_to(ROOT / "docs"):
            place = target.relative_to(ROOT / "docs")
        elif target.is_relative_to(ROOT / EXAMPLES) or (target.parent == ROOT and target.name in OUTSIDE):
            place = target.relative_to(ROOT)
        else:
            return text
        return f"[{text}]({'../' * page.file.src_uri.count('/')}{place}{anchor or ''})"

    return LINK.sub(inside, markdown)
