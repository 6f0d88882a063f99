"""Segments in tiered storage, as its plugin wrote them (tests/data/tiered), against the logs that were uploaded."""

import base64
import dataclasses
import itertools
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import zstandard
from click.testing import CliRunner
from hypothesis import given, strategies as st

import kafkacodec as kc
from kafkacodec.cli.app import application
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import open_file, read_file
from kafkacodec.log.partitions.inside import identity_of_log
from kafkacodec.log.tiered.chunks import decode_sizes
from kafkacodec.log.tiered.keys import KEYS_VARIABLE
from kafkacodec.log.tiered.lineage import in_the_log
from kafkacodec.log.tiered.manifest import parse_manifest
from kafkacodec.log.tiered.segment_file import UploadedFile

DATA = Path(__file__).parents[1] / "data" / "tiered"
SAMPLE = Path(kc.log.__file__).parent / "sample_data"
KEY = str(DATA / "private-key.pem")
VARIANTS = ("plain", "zstd", "aes", "zstd-aes")
LEADERS = DATA / "leaders" / "orders-dlPtJqO1Sb-W-Oym9Umc5w" / "0"
MANIFESTS = sorted(DATA.rglob("*.rsm-manifest"))


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv(KEYS_VARIABLE, KEY)


def rows(partition, **options):
    return [
        row
        for chunk in partition.read(**options)
        for row in zip(chunk["offset"].tolist(), list(chunk["key"]), list(chunk["value"]), strict=True)
    ]


def uploaded(variant, topic="payments"):
    return kc.log.LogDirectory(DATA / variant).partition(topic, 0)


def source(topic="payments"):
    return kc.log.LogDirectory(SAMPLE).partition(topic, 0)


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_records_are_those_that_were_uploaded(variant, level):
    here, there = uploaded(variant), source()
    assert rows(here, isolation_level=level) == rows(there, isolation_level=level)
    assert rows(here, start_offset=20, end_offset=70) == rows(there, start_offset=20, end_offset=70)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_file_of_a_segment_has_its_bytes(variant):
    here, there = uploaded(variant), source()
    for segment, original in zip(here.segments, there.segments, strict=True):
        with open_file(segment.path) as file, open(original.path, "rb") as bytes_:
            assert file.read(0, file.size) == bytes_.read()
        for suffix in (".index", ".timeindex", ".txnindex"):
            index = Path(layout.sibling(original.path, suffix))
            if index.exists():
                assert read_file(layout.sibling(segment.path, suffix), 1 << 20) == index.read_bytes()
            else:
                with pytest.raises(FileNotFoundError, match="without this index"):
                    read_file(layout.sibling(segment.path, suffix), 1 << 20)
    for name in (f"{8:020d}.snapshot", f"{134:020d}.snapshot", "leader-epoch-checkpoint"):
        assert read_file(os.path.join(here.path, name), 1 << 20) == Path(there.path, name).read_bytes()
    assert (here.topic, here.partition, here.state) == ("payments", 0, "remote")
    assert (identity_of_log(here), here.leader_epochs) == (identity_of_log(there), there.leader_epochs)
    assert here.last_stable_offset() == there.last_stable_offset()
    assert here.verify().findings == here.index_problems == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_any_range_of_bytes_comes_from_its_chunks(variant):
    original = Path(source().segments[1].path).read_bytes()
    with open_file(uploaded(variant).segments[1].path) as file:
        assert file.size == len(original)
        for start in range(0, len(original), 509):
            for size in (0, 1, 515, 1024, 2500, 10_000):
                assert file.read(start, size) == original[start : start + size]
        file.drop_before(4500)
        assert bytes(file.view()[:]) == original
        buffer = bytearray(3000)
        assert file.read_into(memoryview(buffer), 4000) == len(original) - 4000
        assert buffer[: len(original) - 4000] == original[4000:]


def test_only_the_chunks_of_the_wanted_bytes_are_decoded():
    with open_file(uploaded("zstd-aes", "orders").segments[1].path) as file:
        file.read(2000, 1100)
        assert isinstance(file, UploadedFile)
        assert file._there == {1, 2, 3}


def test_of_uploads_by_several_leaders_each_offset_is_read_once():
    here, there = kc.log.Partition(LEADERS), source("orders")
    found = [(u.segment_id[0], u.start_offset, u.end_offset, u.superseded) for u in kc.log.uploads(LEADERS)]
    assert found == [
        ("A", 0, 81, False),
        ("B", 82, 166, True),
        ("D", 82, 166, False),
        ("E", 118, 248, False),
        ("C", 167, 248, True),
        ("F", 249, 281, False),
    ]
    assert rows(here) == rows(there)
    assert [row[0] for piece in here.ranges(max_bytes=900) for row in rows(piece)] == [row[0] for row in rows(there)]
    assert rows(here, start_offset=100, end_offset=130) == rows(there, start_offset=100, end_offset=130)
    assert here.leader_epochs == [(0, 0), (1, 167)]
    assert here.breaks() == []
    assert not [finding for finding in here.verify().findings if finding.level == "error"]


@pytest.mark.parametrize(("variant", "topic"), [("leaders", "orders"), ("zstd-aes", "payments")])
def test_recover_writes_a_log_for_a_broker(tmp_path, variant, topic):
    report = kc.log.recover(uploaded(variant, topic).path, tmp_path / "log")
    assert not [finding for finding in report.findings if finding.level == "error"]
    saved = kc.log.LogDirectory(tmp_path / "log").partition(topic, 0)
    for level in ("read_uncommitted", "read_committed"):
        assert rows(saved, isolation_level=level) == rows(source(topic), isolation_level=level)
    assert saved.verify().findings == []


def test_a_missing_upload_is_a_gap(tmp_path):
    copy = shutil.copytree(LEADERS, tmp_path / "orders-dlPtJqO1Sb-W-Oym9Umc5w" / "0")
    next(copy.glob("*-E*.rsm-manifest")).unlink()  # as if its upload had not ended
    with pytest.raises(kc.MissingOffsets, match="gap of 82 offsets from 167 on"):
        rows(kc.log.Partition(copy))


@pytest.fixture
def damaged(tmp_path):
    """A copy of the encrypted and compressed segments, and a function that changes one object of the second."""
    copy = shutil.copytree(DATA / "zstd-aes", tmp_path / "log")
    stem = next(copy.glob("payments-*/0/*08-*.rsm-manifest")).with_suffix("")

    def change(suffix, edit):
        path = stem.with_suffix(suffix)
        path.write_bytes(edit(path.read_bytes()))
        return kc.log.Segment(stem.with_suffix(".log"))

    return change


def error_of(segment):
    with pytest.raises((OSError, kc.errors.KafkaCodecError)) as caught:
        list(segment.read())
    return caught.value


def flip(position):
    return lambda data: data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def edited(*names, value):
    """An edit of a field of the manifest."""

    def edit(data):
        manifest = inner = json.loads(data)
        for name in names[:-1]:
            inner = inner[name]
        if value is None:
            del inner[names[-1]]
        else:
            inner[names[-1]] = value
        return json.dumps(manifest).encode()

    return edit


def sizes(values):
    return base64.b64encode(zstandard.compress(values)).decode()


@pytest.mark.parametrize(
    ("suffix", "edit", "kind", "words"),
    [
        (".log", flip(5), kc.errors.CorruptRecord, "chunk 0 of the object .* were changed, or are of another segment"),
        (".log", lambda data: data[:-1], kc.errors.Truncated, r"the object has \d+ bytes, its manifest says"),
        (".log", lambda data: data + b"x", kc.errors.CorruptRecord, r"the object has \d+ bytes, its manifest says"),
        (".rsm-manifest", lambda data: data[:-5], kc.errors.CorruptRecord, "the manifest is not JSON"),
        (".rsm-manifest", lambda _: b"[" * 100_000, kc.errors.CorruptRecord, "the manifest is not JSON"),
        (".rsm-manifest", lambda _: b"[]", kc.errors.CorruptRecord, "not a JSON object"),
        (".rsm-manifest", edited("version", value="2"), kc.errors.UnsupportedVersion, "version '2'"),
        (".rsm-manifest", edited("compression", value=None), kc.errors.CorruptRecord, "compression .* is missing"),
        (
            ".rsm-manifest",
            edited("chunkIndex", "originalChunkSize", value=0),
            kc.errors.CorruptRecord,
            "is 0, not from",
        ),
        (
            ".rsm-manifest",
            edited("chunkIndex", "originalChunkSize", value=2048),
            kc.errors.CorruptRecord,
            "has 6 chunks",
        ),
        (
            ".rsm-manifest",
            lambda data: edited("chunkIndex", "originalFileSize", value=2**31 - 1)(
                edited("chunkIndex", "originalChunkSize", value=2**31 - 1)(data)
            ),
            kc.errors.LimitExceeded,
            "the limit is 134217728",
        ),
        (".rsm-manifest", edited("chunkIndex", "type", value="other"), kc.errors.CorruptRecord, "is 'other'"),
        (".rsm-manifest", edited("chunkIndex", "transformedChunks", value="?"), kc.errors.CorruptRecord, "base64"),
        (
            ".rsm-manifest",
            edited("chunkIndex", "transformedChunks", value=sizes(bytes(20 << 20))),
            kc.errors.LimitExceeded,
            "transformedChunks .* 20971520 bytes are compressed here",
        ),
        (".rsm-manifest", edited("encryption", "dataKey", value="key1"), kc.errors.CorruptRecord, "a colon"),
        (".rsm-manifest", edited("encryption", "dataKey", value="key1:AAAA"), PermissionError, "does not open"),
        (
            ".rsm-manifest",
            edited("remoteLogSegmentMetadata", "startOffset", value=9),
            kc.errors.CorruptRecord,
            "the manifest is that of another segment",
        ),
        (
            ".rsm-manifest",
            edited("remoteLogSegmentMetadata", "segmentLeaderEpochs", value={"1": 0, "01": 0}),
            kc.errors.CorruptRecord,
            "segmentLeaderEpochs.* has a leader epoch twice, or one of more than 31 bits",
        ),
        (
            ".rsm-manifest",
            edited("remoteLogSegmentMetadata", "segmentLeaderEpochs", value={"2147483648": 0}),
            kc.errors.CorruptRecord,
            "segmentLeaderEpochs.* has a leader epoch twice, or one of more than 31 bits",
        ),
        (
            ".rsm-manifest",
            edited("remoteLogSegmentMetadata", "segmentLeaderEpochs", value={}),
            kc.errors.CorruptRecord,
            "segmentLeaderEpochs.* is empty",
        ),
    ],
)
def test_damaged_objects(damaged, suffix, edit, kind, words):
    error = error_of(damaged(suffix, edit))
    assert type(error) is kind
    with pytest.raises(kind, match=words):
        raise error
    assert str(error).count("\n") == 0
    assert ".log" in str(error.filename) if isinstance(error, OSError) else suffix in str(error)


def test_a_damaged_manifest_hides_only_its_segment(damaged):
    segment = damaged(".rsm-manifest", lambda data: data[:-5])
    directory = os.path.dirname(segment.path)
    assert rows(kc.log.Partition(directory), end_offset=8) == rows(source(), end_offset=8)
    with pytest.raises(kc.errors.CorruptRecord, match="the manifest is not JSON"):
        rows(kc.log.Partition(directory))


def test_missing_objects(damaged):
    segment = damaged(".indexes", lambda data: data[:-300])
    with pytest.raises(kc.errors.Truncated, match=r"inside an index of \d+ bytes"):
        kc.log.read_transaction_index(layout.sibling(segment.path, ".txnindex"))
    os.unlink(segment.path)
    assert isinstance(error_of(segment), FileNotFoundError)


@pytest.mark.parametrize(
    ("keys", "kind", "words"),
    [
        ("", PermissionError, "encrypted for the key pair 'key1'; pass its private key: --tiered-key or"),
        (f"key2={KEY}", PermissionError, "encrypted for the key pair 'key1'"),
        (str(SAMPLE / "meta.properties"), OSError, "not an RSA private key in PEM"),
        ("missing.pem", FileNotFoundError, "missing.pem"),
    ],
)
def test_wrong_keys(monkeypatch, keys, kind, words):
    monkeypatch.setenv(KEYS_VARIABLE, keys)
    error = error_of(uploaded("aes").segments[0])
    assert type(error) is kind
    with pytest.raises(kind, match=words):
        raise error
    assert [u.encrypted for u in kc.log.uploads(uploaded("aes").path)] == [True, True]  # needs no key


def test_a_key_of_another_pair(tmp_path, monkeypatch):
    from Crypto.PublicKey import RSA

    other = tmp_path / "other.pem"
    other.write_bytes(RSA.generate(2048).export_key())
    monkeypatch.setenv(KEYS_VARIABLE, f"key1={other}{os.pathsep}{KEY}")
    with pytest.raises(PermissionError, match="does not open the data key, encrypted for the key pair 'key1'"):
        list(uploaded("aes").segments[0].read())
    monkeypatch.setenv(KEYS_VARIABLE, f"key2={other}{os.pathsep}{KEY}")
    assert rows(uploaded("aes")) == rows(source())


def test_commands_take_the_key():
    def run(*arguments):
        return CliRunner().invoke(application, arguments, env={KEYS_VARIABLE: None})

    directory = str(DATA / "zstd-aes")
    assert "encrypted for the key pair 'key1'" in str(run("dump", directory).exception)
    for command in (["dump", "--json"], ["topics"], ["scan"], ["verify"]):
        result = run(*command, directory, "--tiered-key", f"key1={KEY}")
        assert result.exit_code == 0, result.output
    plain = run("dump", "--json", str(SAMPLE / "payments-0"))
    assert run("dump", "--json", "--topic", "payments", directory, "--tiered-key", KEY).output == plain.output


def test_a_key_that_is_not_there_is_wrong_usage():
    for key in ("nofile", "key1=nofile"):
        result = CliRunner().invoke(application, ["dump", str(DATA / "zstd-aes"), "--tiered-key", key])
        assert result.exit_code == 2
        assert "Invalid value for '--tiered-key': nofile: there is no such file" in result.output


# Encoded by the plugin's ChunkSizesBinaryCodec.
SIZES = {
    "00000000": [],
    "0000000100000005": [5],
    "00000003000f424001000a000f4254": [1000000, 1000010, 1000020],
    "000000050000000104000000000000012b0001116f01312cff00000001": [1, 300, 70000, 20000000, 1],
    "0000000200000007010000000007": [7, 7],
    "0000000300000001047ffffffe0000000000000005": [2147483647, 1, 5],
    "000000040010000002007c0000010100000011": [1048700, 1048576, 1048833, 17],
}


@pytest.mark.parametrize("encoded", SIZES)
def test_sizes_of_chunks(encoded):
    assert decode_sizes(bytes.fromhex(encoded)).tolist() == SIZES[encoded]


@given(st.binary(max_size=40))
def test_other_bytes_are_no_sizes(data):
    try:
        found = decode_sizes(data)
    except kc.errors.CorruptRecord:
        return
    assert len(found) == int.from_bytes(data[:4], "big")
    assert found.dtype == np.int64


json_values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just({}) | st.just([])


@given(st.data())
def test_a_changed_manifest_is_read_or_refused(data):
    """Any field of a real manifest replaced by any value, or a byte changed."""
    path = data.draw(st.sampled_from(MANIFESTS))
    text = path.read_bytes()
    if data.draw(st.booleans()):
        position = data.draw(st.integers(0, len(text) - 1))
        text = text[:position] + bytes([data.draw(st.integers(0, 255))]) + text[position + 1 :]
    else:
        manifest = inner = json.loads(text)
        name = data.draw(st.sampled_from(sorted(inner)))
        while isinstance(inner[name], dict) and inner[name] and data.draw(st.booleans()):
            inner = inner[name]
            name = data.draw(st.sampled_from(sorted(inner)))
        inner[name] = data.draw(json_values)
        text = json.dumps(manifest).encode()
    try:
        found = parse_manifest(text, str(path))
    except (kc.errors.DecodeError, kc.errors.UnsupportedVersion):
        return
    chunks = [found.chunks.chunk(number) for number in range(min(found.chunks.count, 1000))]
    assert all(a.end == b.start and a.stored_end == b.stored_start for a, b in itertools.pairwise(chunks))


@st.composite
def uploads_of_a_log(draw):
    """The leader epoch of each offset of a log, and uploads by its leaders and by those that were cut off."""
    length = draw(st.integers(1, 40))
    starts = sorted(draw(st.sets(st.integers(1, length), max_size=4)) - {length} | {0})
    log = [sum(start <= offset for start in starts) - 1 for offset in range(length)]
    found = []
    for number in range(draw(st.integers(0, 12))):
        leader = draw(st.integers(0, log[-1]))
        first, last = sorted((draw(st.integers(0, length - 1)), draw(st.integers(0, length - 1))))
        found.append(upload_of([min(epoch, leader) for epoch in log], first, last, number))
    first = draw(st.integers(0, length - 1))
    found.append(upload_of(log, first, length - 1, 99))
    return log, draw(st.permutations(found))


def upload_of(epochs, first, last, number):
    changes = [first, *(o for o in range(first + 1, last + 1) if epochs[o] != epochs[o - 1])]
    return dataclasses.replace(
        parse_manifest(MANIFESTS[0].read_bytes(), str(MANIFESTS[0])),
        segment_id=str(number),
        start_offset=first,
        end_offset=last,
        leader_epochs=tuple(kc.log.LeaderEpoch(epochs[offset], offset) for offset in changes),
        uploaded_ms=number,
    )


def epoch_in(upload, offset):
    return max(epoch.epoch for epoch in upload.leader_epochs if epoch.start_offset <= offset)


@given(uploads_of_a_log())
def test_each_offset_is_read_from_an_upload_of_the_log(case):
    """Against the log that the uploads were made from, offset by offset."""
    log, uploads = case
    history = [kc.log.LeaderEpoch(epoch, log.index(epoch)) for epoch in sorted(set(log))]
    chosen = in_the_log(uploads, lambda _: history)
    for one, after in itertools.pairwise(chosen):
        assert one.upload.start_offset < after.upload.start_offset
        assert one.end < after.end
    for offset, epoch in enumerate(log):
        before = [part for part in chosen if part.upload.start_offset <= offset]
        if before and offset < before[-1].end:
            assert epoch_in(before[-1].upload, offset) == epoch
        else:
            assert not any(of_the_log(upload, offset, log) for upload in uploads)


def of_the_log(upload, offset, log):
    """Whether an upload has an offset, and all before it as the log has them."""
    before = range(upload.start_offset, offset + 1)
    return offset in before and offset <= upload.end_offset and all(epoch_in(upload, o) == log[o] for o in before)
