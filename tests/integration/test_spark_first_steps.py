"""What someone who knows Spark, and not this project, does wrong first: each gets one sentence that says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

import kafkacodec as kc

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("kafkalog", {"startingOffsets": "5"}, "startingOffsets: expected earliest, latest or JSON"),
        ("kafkabroker", {"subscribe": "orders"}, "kafka.bootstrap.servers: missing"),
    ],
)
def test_a_wrong_option_of_a_stream(
    spark: Any, tmp_path: Path, source: str, options: dict[str, str], message: str
) -> None:
    """Spark alone would report that it cannot stop a reader that it has not made."""
    if source == "kafkalog":
        options |= {"path": kc.sample().path}
    stream = spark.readStream.format(source).options(**options).load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(StreamingQueryException, match=f"OptionError: {message}") as raised:
        query.awaitTermination()
    assert "Traceback" not in str(raised.value)
    assert "UnboundLocalError" not in str(raised.value)


@pytest.mark.parametrize(("source", "message"), [("kafkalog", "path: missing"), ("kafkabroker", "subscribe: missing")])
def test_both_formats_are_found_without_being_registered(spark: Any, source: str, message: str) -> None:
    with pytest.raises(AnalysisException, match=message):
        spark.newSession().read.format(source).load().count()
