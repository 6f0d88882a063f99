"""A streaming query from files to a live broker, in transactions: `FILES SERVER PREFIX CHECKPOINT TASKS [GATE]`.

PREFIX is the topic, too. With GATE every task waits, after two batches of rows, until there is a file of that
name.
"""

import os
import sys
import time

import kafkacodec as kc
from tests.integration import ready_python


def main(files, server, prefix, checkpoint, tasks, gate=None):
    conf = {"spark.driver.memory": "700m", "spark.sql.execution.arrow.maxRecordsPerBatch": "100"}
    ready_python.use()
    spark = kc.spark.session(conf, master=f"local[{tasks}]", quick_start=True)
    start(spark, files, server, prefix, checkpoint, tasks, gate).awaitTermination()


def start(spark, files, server, prefix, checkpoint, tasks, gate=None):
    """The query in a session that is there."""
    kc.spark.register(spark)

    def held(batches):
        for number, batch in enumerate(batches):
            while number == 2 and gate is not None and not os.path.exists(gate):
                time.sleep(0.05)
            yield batch

    rows = spark.readStream.schema("value string").parquet(files).repartition(int(tasks))
    writer = rows.mapInArrow(held, "value string").writeStream.format("kafkabroker")
    given = {
        "kafka.bootstrap.servers": server,
        "transactionalIdPrefix": prefix,
        "topic": prefix,
    }
    writer = writer.options(**given).option("checkpointLocation", checkpoint).trigger(availableNow=True)
    return writer.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
