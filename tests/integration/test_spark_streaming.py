"""The format `kafkalog` as a stream, in a real Spark session."""

import shutil

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import kafkacodec as kc
from kafkacodec.spark.errors import LostOffsets, OptionError
from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.reading.streaming import SegmentStreamReader

pytestmark = pytest.mark.spark


def append(path, partition, count):
    with kc.log.LogWriter(path, "t", partition, append=True) as log:
        log.write([(None, b"%d" % i) for i in range(log.next_offset, log.next_offset + count)])


def reader(path, **options):
    return SegmentStreamReader(parse_read_options({"path": str(path), **options}, streaming=True), ("offset",))


def plain(offsets):
    """Only the next offsets of what a reader returns."""
    return {
        topic: {
            number: value if isinstance(value, int) else value["offset"]
            for number, value in numbers.items()
            if number != "topicId"
        }
        for topic, numbers in offsets.items()
    }


def test_batches_follow_one_another(spark, tmp_path):
    """Runs of one query, with new records, a new partition and nothing new between them."""
    source, out, checkpoint = (tmp_path / name for name in ("logs", "out", "checkpoint"))

    def run():
        stream = spark.readStream.format("kafkalog").option("maxOffsetsPerTrigger", 60).load(str(source))
        query = stream.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        running = query.trigger(availableNow=True).start(str(out))
        running.awaitTermination()
        progress.extend(each for each in running.recentProgress if each.numInputRows)
        rows = spark.read.parquet(str(out)).selectExpr("partition", "offset", "int(string(value)) AS value").collect()
        assert all(row["offset"] == row["value"] for row in rows)
        return sorted((row["partition"], row["offset"]) for row in rows)

    progress = []
    append(source, 0, 100)
    assert run() == [(0, i) for i in range(100)]
    lags = [kc.spark.progress_lag(each) for each in progress]
    assert lags == [[(0, "t", 0, 60, 100, 40)], [(0, "t", 0, 100, 100, 0)]]
    assert kc.spark.progress_lag(progress[0].json) == lags[0]
    append(source, 0, 50)
    append(source, 1, 30)
    everything = [(0, i) for i in range(150)] + [(1, i) for i in range(30)]
    assert run() == everything
    assert run() == everything


def test_data_loss_ends_the_query_with_one_sentence(spark, tmp_path):
    """Spark shows the sentence without a traceback."""
    source, out, checkpoint = (tmp_path / name for name in ("logs", "out", "checkpoint"))

    def run():
        stream = spark.readStream.format("kafkalog").load(str(source))
        query = stream.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start(str(out)).awaitTermination()

    append(source, 0, 20)
    run()
    shutil.rmtree(source)
    append(source, 0, 30)
    with pytest.raises(StreamingQueryException) as raised:
        run()
    text = str(raised.value)
    said = "failOnDataLoss: the topic of t-0, which was read up to offset 20, was deleted and created again; "
    assert f"LostOffsets: {said}with failOnDataLoss=false reading continues with the new topic from offset 0\n" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("progress", [None, "abc", "[]", {"sources": None}, {"sources": [1]}, 7])
def test_not_a_progress(progress):
    with pytest.raises(OptionError, match="progress: not a progress of a streaming query; None means"):
        kc.spark.progress_lag(progress)


def test_limit_is_shared(tmp_path):
    append(tmp_path, 0, 90)
    append(tmp_path, 1, 10)
    start = {"t": {"0": 0, "1": 0}}
    assert plain(reader(tmp_path).latestOffset(start, ReadMaxRows(10))) == {"t": {"0": 9, "1": 1}}
    assert plain(reader(tmp_path).latestOffset(start, ReadMaxRows(1))) == {"t": {"0": 1, "1": 0}}
    assert plain(reader(tmp_path).latestOffset(start, ReadAllAvailable())) == {"t": {"0": 90, "1": 10}}


def test_starts(tmp_path):
    append(tmp_path, 0, 5)
    assert plain(reader(tmp_path).initialOffset()) == {"t": {"0": 0}}
    assert plain(reader(tmp_path, startingOffsets="latest").initialOffset()) == {"t": {"0": 5}}
    assert plain(reader(tmp_path, startingOffsets='{"t": {"0": 3}}').initialOffset()) == {"t": {"0": 3}}


def test_later_partitions_need_no_start(tmp_path):
    append(tmp_path, 0, 5)
    stream = reader(tmp_path, startingOffsets='{"t": {"0": 3}}')
    start = stream.initialOffset()
    append(tmp_path, 1, 2)
    assert plain(stream.latestOffset(start, ReadAllAvailable())) == {"t": {"0": 5, "1": 2}}


def test_partitions_that_got_nothing_come_first(tmp_path):
    for number in range(4):
        append(tmp_path, number, 1)
    stream = reader(tmp_path)
    first = stream.latestOffset({}, ReadMaxRows(2))
    assert sorted(plain(first)["t"].values()) == [0, 0, 1, 1]
    for number in range(4):
        append(tmp_path, number, 1)
    assert plain(stream.latestOffset(first, ReadMaxRows(2))) == {"t": dict.fromkeys("0123", 1)}


def test_the_first_micro_batch_is_the_same_one_if_it_is_repeated(tmp_path):
    with kc.log.LogWriter(tmp_path, "t", 0, segment_bytes=100) as log:
        for _ in range(4):
            log.write([(None, b"x" * 50)])
    stream = reader(tmp_path)
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    append(tmp_path, 0, 1)
    later = stream.latestOffset(end, ReadAllAvailable())
    again = reader(tmp_path, startingOffsets="latest")
    [task] = again.partitions(again.initialOffset(), end)
    assert [offset for piece in task.value for chunk in piece.read() for offset in chunk["offset"]] == [0, 1, 2, 3]
    [task] = again.partitions(end, later)
    assert [piece.offsets[0] for piece in task.value] == [4]
    (tmp_path / "t-0" / "00000000000000000000.log").unlink()
    again = reader(tmp_path)
    with pytest.raises(LostOffsets, match=r"^failOnDataLoss: offsets 0 to 0 of t-0 were deleted before"):
        again.partitions(again.initialOffset(), end)


def test_a_start_that_was_deleted(tmp_path):
    with kc.log.LogWriter(tmp_path, "t", 0, start_offset=100) as log:
        log.write([(None, b"x")])
    start = {"startingOffsets": '{"t": {"0": 40}}'}
    with pytest.raises(LostOffsets, match=r"^failOnDataLoss: offsets 40 to 99 of t-0 were deleted"):
        reader(tmp_path, **start).initialOffset()
    assert plain(reader(tmp_path, **start, failOnDataLoss="false").initialOffset()) == {"t": {"0": 100}}
    assert plain(reader(tmp_path).initialOffset()) == {"t": {"0": 100}}


def test_a_stream_reads_each_partition_once_and_knows_it_by_its_name(tmp_path):
    append(tmp_path, 0, 1)
    with pytest.raises(OptionError, match="replicas: a stream reads each partition once"):
        reader(tmp_path, replicas="all")
    (tmp_path / "t-0").rename(tmp_path / "backup")
    with pytest.raises(OptionError, match="backup does not name a topic and partition, by which a stream keeps"):
        reader(tmp_path / "backup").initialOffset()


def test_lost_records(tmp_path):
    with kc.log.LogWriter(tmp_path, "t", 0, start_offset=100) as log:
        log.write([(None, b"x")])
    lost = {"t": {"0": 40}}, {"t": {"0": 101}}
    with pytest.raises(OptionError, match=r"^failOnDataLoss: offsets 40 to 99 of t-0 were deleted"):
        reader(tmp_path).partitions(*lost)
    [task] = reader(tmp_path, failOnDataLoss="false").partitions(*lost)
    assert sum(piece.size_in_bytes for piece in task.value) > 0


def test_read_committed_waits_for_open_transactions(spark, tmp_path):
    source, out, checkpoint = (tmp_path / name for name in ("logs", "out", "checkpoint"))
    producer = {"producer_id": 9, "producer_epoch": 0}

    def transactional(offset, count):
        records = [(None, b"%d" % i) for i in range(offset, offset + count)]
        return kc.encode(records, base_offset=offset, is_transactional=True, base_sequence=offset, **producer)

    def run():
        stream = spark.readStream.format("kafkalog").option("isolationLevel", "read_committed").load(str(source))
        query = stream.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start(str(out)).awaitTermination()
        return sorted(row["offset"] for row in spark.read.parquet(str(out)).select("offset").collect())

    def write(*batches):
        with kc.log.LogWriter(source, "t", 0, append=True) as log:
            for batch in batches:
                log.write_batches(batch)

    append(source, 0, 5)
    write(transactional(5, 5))
    append(source, 0, 3)
    stream = reader(source, isolationLevel="read_committed")
    assert plain(stream.latestOffset({"t": {"0": 0}}, ReadAllAvailable())) == {"t": {"0": 5}}
    assert plain(reader(source, isolationLevel="read_committed", startingOffsets="latest").initialOffset()) == {
        "t": {"0": 5}
    }
    assert run() == list(range(5))
    write(kc.control_batch("abort", offset=13, **producer), transactional(14, 2))
    assert run() == [*range(5), 10, 11, 12]
    write(kc.control_batch("commit", offset=16, **producer))
    append(source, 0, 1)
    assert run() == [*range(5), 10, 11, 12, 14, 15, 17]


def test_records_lost_at_the_end_and_between_segments(tmp_path):
    for base in (0, 5, 10):
        with kc.log.LogWriter(tmp_path, "t", 0, start_offset=0, append=base > 0) as log:
            log.write([(None, b"x")] * 5)
    start, end = {"t": {"0": 0}}, reader(tmp_path).latestOffset({"t": {"0": 0}}, ReadAllAvailable())
    assert plain(end) == {"t": {"0": 15}}

    def count(**options):
        stream = reader(tmp_path, **options)
        return sum(batch.num_rows for task in stream.partitions(start, end) for batch in stream.read(task))

    assert count() == 15
    segments = sorted((tmp_path / "t-0").glob("*.log"))
    assert len(segments) == 3
    kept = segments[1].read_bytes()
    segments[1].unlink()
    with pytest.raises(kc.MissingOffsets):
        count()
    assert count(failOnDataLoss="false") == count(gaps="accept") == 10
    segments[1].write_bytes(kept)
    segments[2].unlink()
    with pytest.raises(
        OptionError,
        match=r"^failOnDataLoss: offsets 10 to 14 of t-0 cannot be read: the log was truncated at offset 10",
    ):
        count()
    assert count(failOnDataLoss="false") == 10
