"""Reads orders, computes, and writes the results in transactions: after a failure, each order has one result.

    python exactly_once_pipeline.py [HOST:PORT]

Without an argument: with a broker in this process, and a failure in the middle.
"""

import json
import sys

import kafkacodec as kc

ORDERS = 1000


class Failure(Exception):
    """The program ends before a commit."""


def run(servers: str, fails_at: int | None = None) -> None:
    """Work until no orders are left."""
    reading = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "isolation_level": "read_committed"}
    with (
        kc.client.Consumer("orders", bootstrap_servers=servers, group_id="totals", **reading) as consumer,
        kc.client.Producer(servers, transactional_id="totals-1") as producer,
    ):
        done = 0
        while found := consumer.getmany(timeout=5, max_records=200):
            with producer.transaction():  # aborted by an exception
                for records in found.values():
                    for record in records:
                        order = json.loads(record.value)
                        producer.send("totals", str(order["count"] * order["price"]), key=str(order["number"]))
                        done += 1
                if fails_at is not None and done > fails_at:
                    raise Failure
                positions = {partition: records[-1].offset + 1 for partition, records in found.items()}
                producer.send_offsets_to_transaction(positions, consumer.group_metadata())


def main(servers: str) -> None:
    with kc.client.Producer(servers) as producer:
        for number in range(ORDERS):
            producer.send("orders", json.dumps({"number": number, "count": number % 5, "price": 3}))
    try:
        run(servers, fails_at=ORDERS // 2)
    except Failure:
        print("failed; begins again")
    run(servers)
    with kc.client.Consumer(
        "totals", bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        keys = [key for table in consumer.columns(timeout=3, columns=["key"]) for key in table["key"]]
    print(f"{len(keys)} results for {len(set(keys))} orders")


if len(sys.argv) > 1:
    main(sys.argv[1])
else:
    with kc.broker.serve(topics={"orders": 2, "totals": 2}) as kafka:
        main(kafka.bootstrap_servers)
