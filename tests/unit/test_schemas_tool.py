"""tools/schemas.py reports every change of a newer release, and contradictions of an older one."""

import json
import zipfile

import pytest

from kafkacodec.messages.grammar import parse
from tools import schemas

OURS = parse("""
api 70 Ask
request versions=0-2 flexible=1+
  Name string 0+
  Epoch int32 0+ ignorable
  Hosts []Host 1+ null=2+
    Port uint16 1+
  Since int64 1+ tag=0 default=-1
response versions=0
  Code int16 0
""")
ASK = {
    "apiKey": 70,
    "type": "request",
    "name": "AskRequest",
    "validVersions": "0-2",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "Name", "type": "string", "versions": "0+"},
        {"name": "Epoch", "type": "int32", "versions": "0+", "ignorable": True},
        {
            "name": "Hosts",
            "type": "[]Host",
            "versions": "1+",
            "nullableVersions": "2+",
            "fields": [{"name": "Port", "type": "uint16", "versions": "1+"}],
        },
        {"name": "Since", "type": "int64", "taggedVersions": "1+", "tag": 0, "default": -1},
    ],
}


def changed(place=None, **facts):
    """The request's definition with changes, to one field or to itself."""
    made = json.loads(json.dumps(ASK))
    (made if place is None else made["fields"][place]).update(facts)
    return made


def found(definition):
    _, differences = schemas.compare([definition], OURS)
    return [(difference.text, difference.by_age) for difference in differences]


def test_no_change():
    assert found(ASK) == []
    assert found(changed(validVersions="1")) == []
    assert found({"apiKey": 71, "type": "request", "name": "GoneRequest", "validVersions": "none"}) == []


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        (changed(validVersions="0-3"), "AskRequest v3: a new version"),
        (changed(flexibleVersions="2+"), "AskRequest v1: flexible changes to False"),
        (changed(1, type="int64"), "AskRequest v0: Epoch: type changes from 'int32' to 'int64'"),
        (changed(2, nullableVersions="1+"), "AskRequest v1: Hosts: null changes from False to True"),
        (changed(3, tag=1), "AskRequest v1: Since: tag changes from 0 to 1"),
        (changed(fields=ASK["fields"][1:]), "AskRequest v0: field Name is gone"),
        (
            changed(fields=[*ASK["fields"], {"name": "New", "type": "bool", "versions": "2"}]),
            "AskRequest v2: new field",
        ),
        (changed(fields=[ASK["fields"][i] for i in (1, 0, 2, 3)]), "AskRequest v0: order changes to Epoch, Name"),
        (changed(name="TellRequest", apiKey=72), "TellRequest: a new message"),
    ],
)
def test_what_no_release_explains(definition, text):
    assert any(shown.startswith(text) and not by_age for shown, by_age in found(definition)), found(definition)


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        (changed(1, ignorable=False), "AskRequest v0: Epoch: ignorable changes from True to False"),
        (changed(3, default=0), "AskRequest v1: Since: default changes from -1 to 0"),
        (changed(2, nullableVersions="none"), "AskRequest v2: Hosts: null changes from True to False"),
        (changed(1, name="Era"), "AskRequest v0: Era: is Epoch in the tables"),
        (changed(name="OldRequest"), "OldRequest: is AskRequest in the tables"),
        (changed(fields=ASK["fields"][:3]), "AskRequest v1: field Since is gone"),
        (changed(fields=ASK["fields"][1:], validVersions="0", latestVersionUnstable=True), "AskRequest v0: field Name"),
    ],
)
def test_what_an_older_release_explains(definition, text):
    assert found(definition)
    assert all(by_age for _, by_age in found(definition)), found(definition)
    assert any(shown.startswith(text) for shown, _ in found(definition)), found(definition)


def test_keys_of_coordinators_by_type_and_by_version():
    ours = parse("coordinator-key AKey key=5 versions=0\n  Group string 0\n")
    fields = [{"name": "Group", "type": "string", "versions": "5"}]
    old = {"type": "data", "name": "AKey", "validVersions": "5", "flexibleVersions": "none", "fields": fields}
    assert schemas.compare([old], list(ours)) == ({"AKey"}, [])


@pytest.mark.parametrize(("release", "shown"), [("3.0.0", False), ("99.0.0", True), ("odd", True)])
def test_age_of_jars(release, shown, tmp_path, capsys, monkeypatch):
    """A jar with one message, which has a renamed field."""
    monkeypatch.setattr(schemas, "SCHEMAS", tmp_path)
    (tmp_path / "70_Ask.kmsg").write_text("api 70 Ask\nrequest versions=0\n  Name string 0\n")
    (tmp_path / "index.txt").write_text("# What\n# The newest release: 3.10.1\n70 Ask 0\n")
    jar = tmp_path / f"kafka-clients-{release}.jar"
    field = {"name": "Title", "type": "string", "versions": "0"}
    with zipfile.ZipFile(jar, "w") as archive:
        definition = ASK | {"validVersions": "0", "fields": [field]}
        archive.writestr("common/message/AskRequest.json", "// A licence.\n" + json.dumps(definition))
    assert schemas.check([jar]) == int(shown)
    printed = capsys.readouterr().out
    assert ("AskRequest v0: Title: is Name in the tables" in printed) == shown
    assert ("older: 1 later changes, 0 later messages" in printed) != shown


def test_the_tables_name_their_release():
    assert schemas.newest_release().count(".") == 2
