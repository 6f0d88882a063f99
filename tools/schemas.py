"""Compares the schema tables with Kafka's own message definitions, or writes them.

    schemas.py check JAR...      compare the tables with the definitions inside a release's jars (kafka-clients and, for
                                 the data schemas, the coordinator, metadata, raft and storage jars); print the changes
                                 that this release needs; exit with 1 if there are any
    schemas.py render JSON DIR   write tables from a JSON file of definitions that merges several releases

`make schemas-check JARS="..."` runs the first. The tables hold the messages of all releases up to the one in index.txt.
For an older release, differences that do not change bytes (additions and renames of later releases, drafts) are only
counted.
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
from typing import Any, NamedTuple

from kafkacodec.messages.grammar import parse
from kafkacodec.messages.model import FieldSpec, MessageSpec, StructSpec, version_range, version_text

SCHEMAS = Path(__file__).parent.parent / "kafkacodec" / "messages" / "schema"
# Paths of definitions inside jars; they differ by module.
DEFINITION = re.compile(r"(?:common/)?(?:message|metadata)/\w+\.json")
# Messages that only Kafka's tests use.
IGNORED = re.compile(r"SimpleExampleMessage|SimpleArrays|SimpleRecords")

Definition = dict[str, Any]


# Kafka's definitions to tables


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
        versions = version_range(field.get("versions") or field["taggedVersions"], valid)
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
    index = [
        "# The classes: an API's key, name and versions, or a table and its data schemas.",
        f"# The newest release: {facts['sources']['new']}",
    ]
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


# Comparing tables with the definitions of a release


class Difference(NamedTuple):
    """A difference between a release and the tables; `by_age` if an older release explains it."""

    text: str
    by_age: bool = False


def definitions_in(jars: Iterable[Path]) -> Iterator[Definition]:
    """The message definitions inside jars: JSON files whose first lines are comments."""
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if DEFINITION.fullmatch(name) and not IGNORED.search(name):
                    text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                    yield json.loads(text)


def differences(ours: MessageSpec, theirs: MessageSpec, draft: int | None = None) -> Iterator[Difference]:
    """The differences of one message, in the versions of the release; `draft` is a version that is not final."""
    if ours.name != theirs.name:
        yield Difference(f"{theirs.name}: is {ours.name} in the tables", by_age=True)
    for version in theirs.versions:
        # In older releases the version of a coordinator key is its record type.
        own = 0 if ours.kind == "coordinator-key" and theirs.key is None else version
        where = f"{theirs.name} v{version}"
        if own not in ours.versions:
            yield Difference(f"{where}: a new version")
            continue
        found = list(_struct_differences(f"{where}: ", ours.struct, theirs.struct, own, version))
        if (own in ours.flexible) != (version in theirs.flexible):
            found.append(Difference(f"{where}: flexible changes to {version in theirs.flexible}"))
        yield from [Difference(text, by_age=True) for text, _ in found] if version == draft else found


def _struct_differences(
    where: str, ours: StructSpec, theirs: StructSpec, own: int, version: int
) -> Iterator[Difference]:
    """The differences of one struct, between version `own` of the tables and `version` of the release."""
    mine = {field.name: field for field in ours.fields if own in field.versions}
    other = {field.name: field for field in theirs.fields if version in field.versions}
    names = {name: name for name in other if name in mine} | _renamed(mine, other, own, version)
    for name, field in other.items():
        if name not in names:
            yield Difference(f"{where}new field {name} {field.type}")
            continue
        known = mine[names[name]]
        if name != known.name:
            yield Difference(f"{where}{name}: is {known.name} in the tables", by_age=True)
        yield from _field_differences(f"{where}{name}: ", _facts(known, own), _facts(field, version))
        if known.struct and field.struct:
            yield from _struct_differences(f"{where}{name}.", known.struct, field.struct, own, version)
    for name in sorted(mine.keys() - names.values()):
        yield Difference(f"{where}field {name} is gone", by_age=own in mine[name].tagged)
    wire = [[name for name, field in mine.items() if own not in field.tagged]]
    wire.append([names.get(name, name) for name, field in other.items() if version not in field.tagged])
    if sorted(wire[0]) == sorted(wire[1]) and wire[0] != wire[1]:
        yield Difference(f"{where}order changes to {', '.join(wire[1])}")


def _renamed(mine: dict[str, FieldSpec], other: dict[str, FieldSpec], own: int, version: int) -> dict[str, str]:
    """Fields with the same position and encoding, but another name."""
    pairs = zip(mine.items(), other.items(), strict=False)
    return {
        new: old
        for (old, field), (new, changed) in pairs
        if old not in other
        and new not in mine
        and all(_facts(field, own)[what] == _facts(changed, version)[what] for what in ("type", "null", "tag"))
    }


def _field_differences(where: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Difference]:
    for what, value in before.items():
        if value != after[what]:
            # Does not change bytes, or only allows null.
            by_age = what in ("default", "ignorable") or (what == "null" and value)
            yield Difference(f"{where}{what} changes from {value!r} to {after[what]!r}", by_age)


def _facts(field: FieldSpec, version: int) -> dict[str, Any]:
    kind = "struct" if field.struct else field.type
    return {
        "type": f"[{field.array}]{kind}" if field.array else kind,
        "null": version in field.nullable,
        "tag": field.tag if version in field.tagged else None,
        # The default of records follows from the versions in which they are nullable.
        "default": None if field.type == "records" else field.default,
        "ignorable": field.ignorable,
    }


def release_of(jars: Iterable[Path]) -> tuple[int, ...]:
    """The release in the names of the jars; newer than any if the names have none."""
    found = {match[1] for jar in jars if (match := re.search(r"-(\d+\.\d+\.\d+)[^-]*\.jar$", jar.name))}
    return _numbers(found.pop()) if len(found) == 1 else (sys.maxsize,)


def newest_release() -> str:
    """The newest release that the tables have."""
    index = (SCHEMAS / "index.txt").read_text()
    found = re.search(r"^# The newest release: (.+)$", index, flags=re.MULTILINE)
    if found is None:
        raise ValueError("index.txt does not name the newest release")
    return found[1]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def compare(definitions: Iterable[Definition], ours: list[MessageSpec]) -> tuple[set[str], list[Difference]]:
    """The names of the tables' messages that a release has, and the differences."""
    by_name = {message.name: message for message in ours}
    by_key = {(message.kind, message.key): message for message in ours if message.kind in ("request", "response")}
    valid = [definition for definition in definitions if definition["validVersions"] != "none"]
    drafts = {definition["apiKey"] for definition in valid if definition.get("latestVersionUnstable")}
    seen: set[str] = set()
    found: list[Difference] = []
    for definition in valid:
        name, kind, key = definition["name"], definition["type"], definition.get("apiKey")
        in_api = kind in ("request", "response")
        theirs = parse(
            table([definition], (definition["apiKey"], name.removesuffix(kind.capitalize())) if in_api else None)
        )[0]
        known = by_name.get(name) or by_key.get((kind, key))
        if known is None:
            found.append(Difference(f"{name}: a new message"))
            continue
        seen.add(known.name)
        found += differences(known, theirs, theirs.versions[-1] if in_api and key in drafts else None)
    return seen, found


def check(jars: list[Path]) -> int:
    """Prints the differences; returns their number."""
    ours = [message for path in SCHEMAS.glob("*.kmsg") for message in parse(path.read_text())]
    seen, found = compare(definitions_in(jars), ours)
    older = release_of(jars) < _numbers(newest_release())
    shown = [difference for difference in found if not (older and difference.by_age)]
    for difference in shown:
        print(difference.text)
    gone = sorted({message.name for message in ours} - seen)
    print(f"{len(seen)} messages compared, {len(shown)} differences; the tables have release {newest_release()}")
    if older:
        print(f"these jars are older: {len(found) - len(shown)} later changes, {len(gone)} later messages")
    else:
        print(f"not in these jars: {', '.join(gone) or 'nothing'}")
    return len(shown)


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
