"""Messages encoded by one library and decoded by another: kafkacodec, kio and kafka-python, in common versions.

Messages have random values that all of them can represent; the encoders must return the same bytes.
"""

import importlib
import io
import pkgutil

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kafkacodec import messages
from kafkacodec.messages.model import snake_case
from tests.examples import examples

kio_schema = pytest.importorskip("kio.schema")
serial = pytest.importorskip("kio.serial")
OUTSIDE = (ValueError, OverflowError, importlib.import_module("kio.serial.errors").OutOfBoundValue)

INTEGERS = {"int8": (-128, 127), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}
INTEGERS |= {"int64": (-(2**63), 2**63 - 1), "uint16": (0, 2**16 - 1), "uint32": (0, 2**32 - 1)}
PLAIN = {
    "bool": st.booleans(),
    "string": st.text(max_size=20),
    "bytes": st.binary(max_size=20),
    "records": st.binary(max_size=20),
    "uuid": st.uuids(),
    "float64": st.floats(allow_nan=False),
    **{name: st.integers(*bounds) for name, bounds in INTEGERS.items()},
}


def values_of(cls, version):
    """A strategy for objects of a struct class, with all fields that the version has."""
    return st.builds(
        cls,
        **{
            field.attribute: field_values(cls, field, version)
            for field in cls._spec.fields
            if version in field.versions
        },
    )


def field_values(cls, field, version):
    single = values_of(cls._parts[field.struct.name], version) if field.struct else PLAIN[field.type]
    found = st.lists(single, max_size=3) if field.array else single
    return st.none() | found if version in field.nullable else found


def cases():
    for api in messages.APIS.values():
        for cls in (api.request, api.response):
            yield pytest.param(cls, id=cls.__name__)


@pytest.mark.parametrize("cls", list(cases()))
@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_round_trip(cls, data):
    version = data.draw(st.sampled_from(cls.valid_versions))
    message = data.draw(values_of(cls, version))
    body = message.encode(version)
    assert cls.decode(body, version) == message
    assert cls.decode(body, version).encode(version) == body
    assert cls.from_dict(message.to_dict()) == message


def kio_modules():
    """(our class, version, module of kio) for the first and the last common version."""
    found = {}
    for api in pkgutil.iter_modules(kio_schema.__path__):
        if not api.ispkg:
            continue
        package = importlib.import_module(f"kio.schema.{api.name}")
        for entry in pkgutil.iter_modules(package.__path__):
            if entry.name.startswith("v") and entry.name[1:].isdigit():
                found.setdefault(api.name, []).append(int(entry.name[1:]))
    for api in messages.APIS.values():
        for version in sorted(set(found.get(snake_case(api.name), ())) & set(api.valid_versions))[::4]:  # type: ignore[attr-defined]
            for kind in ("request", "response"):
                yield pytest.param(api.name, kind, version, id=f"{api.name}-{kind}-{version}")


@pytest.mark.parametrize(("api", "kind", "version"), list(kio_modules()))
def test_kio_reads_and_writes_the_same(api, kind, version):
    module = importlib.import_module(f"kio.schema.{snake_case(api)}.v{version}.{kind}")
    entity = getattr(module, f"{api}{kind.capitalize()}")
    reader, writer = serial.entity_reader(entity), serial.entity_writer(entity)
    cls = getattr(messages, f"{api}{kind.capitalize()}")

    @settings(max_examples=examples(5), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(values_of(cls, version))
    def check(message):
        body = message.encode(version)
        try:
            theirs, size = reader(body, 0)
        except OUTSIDE:
            return  # times and durations that kio's types cannot represent
        assert size == len(body)
        out = io.BytesIO()
        try:
            writer(out, theirs)
        except OUTSIDE:
            return
        again = cls.decode(out.getvalue(), version)
        assert names_of(again) == names_of(message)

    check()


def names_of(value):
    """The parts that kio's types preserve: strings, bytes and the structure of the message."""
    if isinstance(value, messages.MessageStruct):
        return [names_of(getattr(value, field.attribute)) for field in value._spec.fields]
    if isinstance(value, list):
        return [names_of(item) for item in value]
    if isinstance(value, (str, bytes, memoryview)):
        return bytes(value) if isinstance(value, memoryview) else value
    return None


def test_kio_has_been_met():
    assert len(list(kio_modules())) > 100


def kafka_python_classes():
    """kafka-python's message classes by name."""
    found = {}
    for name in ("admin", "consumer", "metadata", "producer"):
        module = pytest.importorskip(f"kafka.protocol.{name}")
        found |= {
            key: cls
            for key, cls in vars(module).items()
            if key.endswith(("Request", "Response")) and hasattr(cls, "decode")
        }
    return {key: cls for key, cls in found.items() if key in messages.message_names()}


@pytest.mark.parametrize("name", sorted(kafka_python_classes()))
def test_kafka_python_reads_and_writes_the_same(name):
    theirs, ours = kafka_python_classes()[name], getattr(messages, name)
    low, high = theirs.valid_versions
    shared = sorted({low, high, (low + high) // 2} & set(ours.valid_versions))

    @settings(max_examples=examples(12), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data):
        version = data.draw(st.sampled_from(shared))
        message = data.draw(values_of(ours, version))
        if name == "ApiVersionsResponse":
            message.error_code = 0  # it reads any other as a response of version 0
        read = theirs.decode(message.encode(version), version=version)
        read._header = None  # its decoder leaves this out, but its encoder needs it
        assert ours.decode(bytes(read.encode(version=version)), version) == message

    check()
