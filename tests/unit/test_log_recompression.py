"""The trial of codecs, compared with compressing the same bytes by the standard library."""

import gzip
import shutil
import zlib

import numpy as np
import pytest

import kafkacodec as kc
from tests.corpus import ROOT, segments
from tests.dialect_vectors import ROOT as DIALECTS

LOGS = ROOT / "logs"


def batches(partition):
    """Sidecar rows of the batches of a partition, with the bytes of each."""
    for sample in segments():
        if sample.path.parent == LOGS / partition:
            data = sample.data()
            for batch in sample.expected.batches:
                yield batch, data[batch["position"] : batch["position"] + batch["sizeInBytes"]]


def test_batches_as_they_are_stored():
    trial = kc.log.codec_trial(kc.log.Partition(LOGS / "kraft-4.1.0/none-0"), codecs=[("none", None)])
    total = sum(batch["sizeInBytes"] for batch, _ in batches("kraft-4.1.0/none-0"))
    (result,) = trial.results
    assert trial.complete
    assert (trial.log_bytes, trial.sample_bytes, trial.codecs) == (total, total, {"none": total})
    assert (result.size_in_bytes, result.estimated_bytes, result.margin) == (total, total, 0.0)
    assert trial.num_batches == len(list(batches("kraft-4.1.0/none-0")))


def test_another_codec_gets_the_bytes_that_a_broker_would_compress():
    trial = kc.log.codec_trial(kc.log.Partition(LOGS / "kraft-4.1.0/gzip-0"), codecs=[("none", None), ("gzip", 9)])
    stored = [data for _, data in batches("kraft-4.1.0/gzip-0")]
    payloads = [gzip.decompress(data[61:]) for data in stored]
    assert trial.codecs == {"gzip": sum(map(len, stored))}
    assert trial.records_bytes == sum(map(len, payloads))
    assert trial.results[0].size_in_bytes == sum(61 + len(payload) for payload in payloads)
    assert trial.results[1].size_in_bytes == sum(61 + len(zlib.compress(p, 9, wbits=31)) for p in payloads)
    assert trial.results[1].compress_speed > 0
    assert trial.results[1].decompress_speed > 0


def test_control_batches_stay_as_they_are():
    rows = list(batches("kraft-4.1.0/txn-0"))
    control = sum(len(data) for batch, data in rows if data[22] & 0x20)
    assert control
    trial = kc.log.codec_trial(kc.log.Partition(LOGS / "kraft-4.1.0/txn-0"), codecs=[("none", None), ("zstd", 3)])
    assert trial.num_batches == sum(not data[22] & 0x20 for _, data in rows)
    assert trial.results[1].size_in_bytes > control
    assert trial.sample_bytes == sum(len(data) for _, data in rows)


@pytest.mark.parametrize("place", ["v0-0.8.2.2/mixed-0", "v1-0.10.2.2/broker-gzip-0"])
def test_messages_of_older_formats_become_batches(place):
    trial = kc.log.codec_trial(kc.log.Partition(LOGS / place), codecs=[("none", None), ("zstd", 3)])
    assert trial.complete
    assert trial.unreadable_bytes == 0
    assert trial.sample_bytes == sum(len(data) for _, data in batches(place))
    rows = [r for s in segments() if s.path.parent == LOGS / place for r in s.expected.records]
    least = sum(len(r.key or b"") + (0 if r.value is None else getattr(r.value, "size", len(r.value))) for r in rows)
    assert least < trial.records_bytes < least + 40 * len(rows)


def test_logs_of_kafka_0_7():
    partitions = kc.log.discover(DIALECTS / "kafka07/segments/broker-0")
    trial = kc.log.codec_trial(partitions, codecs=[("none", None)])
    assert trial.sample_bytes == trial.log_bytes == sum(p.size_in_bytes for p in partitions)


def test_zeros_that_a_broker_preallocates_do_not_count():
    (partition,) = kc.log.discover(LOGS / "kraft-4.1.0-live")
    used = sum(batch["sizeInBytes"] for batch, _ in batches("kraft-4.1.0-live/preallocated-0"))
    trial = kc.log.codec_trial(partition, codecs=[("none", None)])
    assert used < partition.size_in_bytes
    assert (trial.log_bytes, trial.complete) == (used, True)


def test_damaged_batches_are_left_out(tmp_path):
    shutil.copytree(LOGS / "kraft-4.1.0/none-0", tmp_path / "none-0")
    name = min(p.name for p in (tmp_path / "none-0").glob("*.log"))
    sample = next(s for s in segments(writer="kraft-4.1.0") if s.path == LOGS / "kraft-4.1.0/none-0" / name)
    bad = sample.expected.batches[1]
    data = bytearray(sample.data())
    data[bad["position"] + 70] ^= 1
    (tmp_path / "none-0" / name).write_bytes(data)
    trial = kc.log.codec_trial(kc.log.Partition(tmp_path / "none-0"), codecs=[("none", None)])
    assert trial.unreadable_bytes == bad["sizeInBytes"]
    assert trial.sample_bytes == trial.log_bytes - bad["sizeInBytes"]


def test_a_sample_of_a_large_log_is_spread_over_it(tmp_path):
    rng = np.random.default_rng(1)
    with kc.log.LogWriter(tmp_path, "t", 0, segment_bytes=2 << 20) as log:
        for i in range(48):  # the second half cannot be compressed
            values = [rng.bytes(900) if i >= 24 else bytes(900) for _ in range(300)]
            log.write([(None, value) for value in values])
    partition = kc.log.Partition(tmp_path / "t-0")
    codecs = [("none", None), ("zstd", 1)]
    trial = kc.log.codec_trial(partition, codecs=codecs, sample_bytes=2 << 20)
    assert 50 <= trial.num_stretches <= 64
    assert 1 << 20 < trial.sample_bytes < 3 << 20
    assert not trial.complete
    none, zstd = trial.results
    assert none.estimated_bytes == partition.size_in_bytes
    assert none.margin == 0.0
    exact = kc.log.codec_trial(partition, codecs=codecs, sample_bytes=1 << 30)
    assert exact.complete
    true = exact.results[1].size_in_bytes
    assert abs(zstd.estimated_bytes - true) <= zstd.margin * zstd.estimated_bytes
    assert 0.01 < zstd.margin < 0.2


def test_nothing_to_try(tmp_path):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "00000000000000000000.log").touch()
    trial = kc.log.codec_trial(kc.log.Partition(tmp_path / "t-0"))
    assert (trial.log_bytes, trial.num_batches, trial.complete) == (0, 0, True)
    assert [result.estimated_bytes for result in trial.results] == [0] * 7


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"codecs": [("brotli", None)]}, "unknown codec 'brotli'"),
        ({"codecs": [("gzip", 10)]}, "gzip"),
        ({"codecs": [("snappy", 1)]}, "snappy has no levels"),
        ({"sample_bytes": 0}, "sample_bytes"),
    ],
)
def test_wrong_arguments(options, reason):
    with pytest.raises(ValueError, match=reason):
        kc.log.codec_trial([], **options)
