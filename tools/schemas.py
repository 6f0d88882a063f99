"""Keeps the schema tables in step with Kafka's own message definitions.

    schemas.py check JAR...      compare the tables with the definitions inside a release's jars (kafka-clients and, for
                                 the data schemas, the coordinator, metadata, raft and storage jars); print what that
                                 release would change; exit with 1 where something differs
    schemas.py render JSON DIR   write tables from a JSON file of definitions that merges several releases

`make schemas-check JARS="..."` runs the first.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kafkacodec.messages.grammar import parse
from kafkacodec.messages.model import FieldSpec, MessageSpec, StructSpec, version_range, version_text

SCHEMAS = Path(__file__).parent.parent / "kafkacodec" / "messages" / "schema"
# Definitions of messages that only tests of Kafka use.
IGNORED = re.compile(r"SimpleExampleMessage|SimpleArrays|SimpleRecords")

Definition = dict[str, Any]


# Definitions as Kafka writes them -> table text


def table(definitions: Iterable[Definition], api: tuple[int, str] | None = None) -> str:
    """The table of a list of definitions; `api` is the key and the name for requests and responses."""
    out = io.StringIO()
    if api:
        out.write(f"api {api[0]} {api[1]}\n")
    for definition in definitions:
        _write_message(out, definition, in_api=api is not None)
    return out.getvalue()


def _write_message(out: io.StringIO, definition: Definition, in_api: bool) -> None:
    versions = version_range(definition["validVersions"])
    words = [definition["type"]] if in_api else [definition["type"], definition["name"]]
    if not in_api and definition.get("apiKey") is not None:
        words.append(f"key={definition['apiKey']}")
    words.append(f"versions={version_text(versions)}")
    flexible = version_range(definition["flexibleVersions"], versions)
    if flexible:
        words.append(f"flexible={version_text(flexible, versions)}")
    out.write(" ".join(words) + "\n")
    for struct in definition.get("commonStructs", []):
        out.write(f"  struct {struct['name']}\n")
        _write_fields(out, struct["fields"], versions, 2)
    _write_fields(out, definition["fields"], versions, 1)


def _write_fields(out: io.StringIO, fields: list[Definition], valid: range, depth: int) -> None:
    for field in fields:
        versions = version_range(field["versions"], valid)
        if not versions:
            continue
        words = [field["name"], field["type"], version_text(versions, valid)]
        nullable = version_range(field.get("nullableVersions", "none"), versions)
        if nullable:
            words.append("null" if nullable == versions else f"null={version_text(nullable, valid)}")
        tagged = version_range(field.get("taggedVersions", "none"), versions)
        if tagged:
            words.append(f"tag={field['tag']}" + ("" if tagged == versions else f"@{version_text(tagged, valid)}"))
        default = field.get("default")
        if default not in (None, "", "false", "0"):
            words.append(f"default={default}")
        if field.get("ignorable") in (True, "true"):
            words.append("ignorable")
        if field.get("flexibleVersions") == "none":
            words.append("fixed")
        out.write("  " * depth + " ".join(words) + "\n")
        _write_fields(out, field.get("fields", []), valid, depth + 1)


def render(facts: Definition, directory: Path) -> None:
    """Writes one table per API and per group of data schemas, and the index."""
    directory.mkdir(parents=True, exist_ok=True)
    index = ["# Where each class comes from: an API's key, name and versions, or a table and its data schemas."]
    for api in sorted(facts["apis"], key=lambda a: int(a["key"])):
        text = table([api["request"], api["response"]], (api["key"], api["name"]))
        (directory / f"{api['key']:02}_{api['name']}.kmsg").write_text(text)
        index.append(f"{api['key']} {api['name']} {api['validVersions']}")
    groups = {
        "headers": list(facts["headers"].values()),
        "common": facts["data"],
        "metadata": facts["metadataRecords"],
        "raft": facts["raft"],
        "storage": facts["storage"],
        **facts["coordinator"],
    }
    for group, definitions in groups.items():
        (directory / f"{group}.kmsg").write_text(table(definitions))
        index.append(" ".join([group, *(d["name"] for d in definitions)]))
    (directory / "index.txt").write_text("\n".join(index) + "\n")


# Tables against the definitions of one release


def definitions_in(jars: Iterable[Path]) -> Iterator[Definition]:
    """The message definitions inside jars: JSON files whose first lines are comments."""
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.startswith("common/message/") and name.endswith(".json") and not IGNORED.search(name):
                    text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                    yield json.loads(text)


def differences(ours: MessageSpec, theirs: MessageSpec) -> Iterator[str]:
    """What a release changes in one message, over the versions that the release has."""
    new = [v for v in theirs.versions if v not in ours.versions]
    if new:
        yield f"{theirs.name}: new versions {new}"
    for version in theirs.versions:
        if version not in ours.versions:
            continue
        if (version in ours.flexible) != (version in theirs.flexible):
            yield f"{theirs.name} v{version}: flexible changes to {version in theirs.flexible}"
        yield from _struct_differences(f"{theirs.name} v{version}: ", ours.struct, theirs.struct, version)


def _struct_differences(where: str, ours: StructSpec, theirs: StructSpec, version: int) -> Iterator[str]:
    mine = [f for f in ours.fields if version in f.versions]
    other = [f for f in theirs.fields if version in f.versions]
    by_name = {f.name: f for f in mine}
    for field in other:
        if field.name not in by_name:
            yield f"{where}new field {field.name} {field.type}"
            continue
        known = by_name[field.name]
        before, after = _facts(known, version), _facts(field, version)
        for what in before:
            if before[what] != after[what]:
                yield f"{where}{field.name}: {what} changes from {before[what]!r} to {after[what]!r}"
        if known.struct and field.struct:
            yield from _struct_differences(f"{where}{field.name}.", known.struct, field.struct, version)
    names = {f.name for f in other}
    for field in mine:
        if field.name not in names:
            yield f"{where}field {field.name} is gone"
    wire = [[f.name for f in fields if version not in f.tagged] for fields in (mine, other)]
    if sorted(wire[0]) == sorted(wire[1]) and wire[0] != wire[1]:
        yield f"{where}order changes to {', '.join(wire[1])}"


def _facts(field: FieldSpec, version: int) -> dict[str, Any]:
    return {
        "type": f"[{field.array}]{field.type}" if field.array else field.type,
        "null": version in field.nullable,
        "tag": field.tag if version in field.tagged else None,
        "default": field.default,
        "ignorable": field.ignorable,
    }


def check(jars: list[Path]) -> int:
    """Prints the differences; returns how many there are."""
    ours = {m.name: m for path in SCHEMAS.glob("*.kmsg") for m in parse(path.read_text())}
    seen: set[str] = set()
    count = 0
    for definition in definitions_in(jars):
        name, kind = definition["name"], definition["type"]
        if definition["validVersions"] == "none":
            continue
        api = (definition["apiKey"], name.removesuffix(kind.capitalize())) if kind in ("request", "response") else None
        theirs = parse(table([definition], api))[0]
        seen.add(name)
        found = list(differences(ours[name], theirs)) if name in ours else [f"{name}: a new message"]
        count += len(found)
        for line in found:
            print(line)
    gone = sorted(set(ours) - seen)
    print(f"{len(seen)} definitions compared, {count} differences; not in these jars: {', '.join(gone) or 'nothing'}")
    return count


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    checker = commands.add_parser("check")
    checker.add_argument("jars", nargs="+", type=Path)
    renderer = commands.add_parser("render")
    renderer.add_argument("facts", type=Path)
    renderer.add_argument("directory", type=Path, nargs="?", default=SCHEMAS)
    options = parser.parse_args(argv)
    if options.command == "render":
        render(json.loads(options.facts.read_text()), options.directory)
        return 0
    return 1 if check(options.jars) else 0


if __name__ == "__main__":
    sys.exit(main())
