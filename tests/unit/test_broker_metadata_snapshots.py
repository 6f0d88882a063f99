"""The log of the metadata does not grow for ever: snapshots take the place of its records."""

from __future__ import annotations

from pathlib import Path

import kafkacodec as kc
from kafkacodec.log import LogDirectory, LogWriter, read_cluster_metadata
from kafkacodec.log.state.metadata_snapshot import encode_metadata_snapshot
from kafkacodec.messages.stored import encode_metadata_record
from tests.patience import eventually

OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": 3000,
    "log.retention.check.interval.ms": 50,
    "log.segment.delete.delay.ms": 50,
}


def files(data: Path, suffix: str) -> list[str]:
    return sorted(path.name for path in (data / "__cluster_metadata-0").iterdir() if path.name.endswith(suffix))


def seen(kafka: kc.broker.Broker) -> dict[str, object]:
    with kc.client.Admin(kafka.bootstrap_servers) as admin:
        names = admin.list_topics()
        described = admin.describe_topics(names)
        configs = admin.describe_configs([("topic", name) for name in names])
        return {
            "topics": {name: (one.topic_id, len(one.partitions)) for name, one in described.items()},
            "configs": {one.name: {n: e.value for n, e in found.items()} for one, found in configs.items()},
            "users": admin.describe_user_scram_credentials(),
            "quotas": admin.describe_client_quotas(),
        }


def test_a_long_log_becomes_a_snapshot(tmp_path: Path) -> None:
    with kc.broker.serve(tmp_path, config=OFTEN) as kafka, kc.client.Admin(kafka.bootstrap_servers) as admin:
        for n in range(60):
            admin.create_topics([kc.client.NewTopic(f"t{n}", 3, configs={"retention.ms": str(n + 1)})])
            if n % 2:
                admin.delete_topics([f"t{n}"])
        admin.alter_user_scram_credentials({"u": kc.client.ScramCredential("SCRAM-SHA-256", "secret")})
        admin.alter_client_quotas({(("user", "u"),): {"producer_byte_rate": 5.0}})
        eventually(lambda: len(files(tmp_path, ".log")) == 1 and len(files(tmp_path, ".checkpoint")) == 1)
        admin.incremental_alter_configs({("topic", "t0"): {"retention.ms": "9"}})
        expected = seen(kafka)
    (snapshot,), (log,) = files(tmp_path, ".checkpoint"), files(tmp_path, ".log")
    assert log[:20] == snapshot[:20] > f"{60:020}"
    assert (tmp_path / "__cluster_metadata-0" / log).stat().st_size < 2 * 3000  # it is looked at now and then
    assert {*read_cluster_metadata(tmp_path).topics} == {f"t{n}" for n in range(0, 60, 2)}
    assert LogDirectory(tmp_path).verify().ok
    with kc.broker.serve(tmp_path, config=OFTEN) as kafka:
        assert seen(kafka) == expected


def test_a_crash_between_a_snapshot_and_the_cut_changes_nothing(tmp_path: Path) -> None:
    with kc.broker.serve(tmp_path, topics={"a": 2}) as kafka:
        expected = seen(kafka)
    metadata = tmp_path / "__cluster_metadata-0"
    data = b"".join((metadata / name).read_bytes() for name in files(tmp_path, ".log"))
    made = encode_metadata_snapshot([data], 1)
    end = list(kc.scan(data))[-1].last_offset + 1
    (metadata / f"{end:020}-0000000001.checkpoint").write_bytes(made or b"")
    with kc.broker.serve(tmp_path) as kafka:
        assert seen(kafka) == expected


def test_a_log_with_unknown_records_stays_whole(tmp_path: Path, caplog) -> None:
    known = encode_metadata_record(kc.messages.NoOpRecord(), 0)
    kc.broker.serve(tmp_path).stop()
    with LogWriter(tmp_path, "__cluster_metadata", 0, append=True) as log:
        log.write([(None, known[:1] + bytes([99]) + known[2:])])
    with kc.broker.serve(tmp_path, config=OFTEN | {"metadata.log.max.record.bytes.between.snapshots": 10}):
        eventually(lambda: "cannot be written to a snapshot" in caplog.text)
    assert files(tmp_path, ".checkpoint") == []
    assert files(tmp_path, ".log")[0] == f"{0:020}.log"
