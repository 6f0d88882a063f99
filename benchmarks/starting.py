"""How long programs take that do one thing: start Python, send or read one record, or serve, and end.

    python -m benchmarks.starting [ROUNDS]

prints the processor milliseconds of each process, the least and the median of all rounds, in turns. The first two are
what the others cannot fall below: Python alone, and with the event loop that clients and brokers run on. Bytecode files
are written by a round that does not count.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import kafkacodec as kc
from benchmarks.broker_servers import ours

TOPIC = "one"
_OURS = "import sys, kafkacodec as kc\n"
_AIO = "import sys, asyncio, aiokafka\nasync def main():\n"
_RUN = "asyncio.run(main())\n"

SCRIPTS: Mapping[str, Sequence[str]] = {
    "Python": ["-c", "pass"],
    "Python with asyncio": ["-c", "import asyncio"],
    "send one": [
        "-c", f"{_OURS}with kc.client.Producer(sys.argv[1]) as producer:\n    producer.send({TOPIC!r}, b'value')",
        "SERVER",
    ],
    "send one, aiokafka": [
        "-c", f"""{_AIO}    async with aiokafka.AIOKafkaProducer(bootstrap_servers=sys.argv[1]) as producer:
        await producer.send_and_wait({TOPIC!r}, b'value')
{_RUN}""", "SERVER",
    ],
    "send one, confluent-kafka": [
        "-c", f"""import sys, confluent_kafka
producer = confluent_kafka.Producer({{"bootstrap.servers": sys.argv[1]}})
producer.produce({TOPIC!r}, b"value")
assert producer.flush(30) == 0""", "SERVER",
    ],
    "read one": [
        "-c", f"""{_OURS}options = {{"bootstrap_servers": sys.argv[1], "auto_offset_reset": "earliest"}}
with kc.client.Consumer({TOPIC!r}, **options) as consumer:
    assert next(iter(consumer)).value == b"value\"""", "SERVER",
    ],
    "read one, aiokafka": [
        "-c", f"""{_AIO}    options = {{"bootstrap_servers": sys.argv[1], "auto_offset_reset": "earliest"}}
    async with aiokafka.AIOKafkaConsumer({TOPIC!r}, **options) as consumer:
        assert (await consumer.getone()).value == b"value"
{_RUN}""", "SERVER",
    ],
    "read one, confluent-kafka": [
        "-c", f"""import sys, confluent_kafka
options = {{"bootstrap.servers": sys.argv[1], "group.id": "unused"}}
consumer = confluent_kafka.Consumer(options)
consumer.assign([confluent_kafka.TopicPartition({TOPIC!r}, 0, confluent_kafka.OFFSET_BEGINNING)])
assert consumer.poll(30).value() == b"value"
consumer.close()""", "SERVER",
    ],
    "kafkacodec consume -n 1": ["-m", "kafkacodec", "consume", "-n", "1", "-b", "SERVER", TOPIC],
    "kafkacodec --help": ["-m", "kafkacodec", "--help"],
    "a broker that starts and stops": ["-c", f"{_OURS}with kc.broker.serve():\n    pass"],
}  # fmt: skip
"""Arguments of Python by what the program does; SERVER stands for the broker's address."""


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    spent: dict[str, list[float]] = {name: [] for name in SCRIPTS}
    with ours() as server, tempfile.TemporaryDirectory() as bytecode:
        with kc.client.Producer(server.address) as producer:
            producer.send(TOPIC, b"value").result()
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONPATH": str(Path(__file__).parents[1])}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for name, arguments in SCRIPTS.items():
                seconds = _run([server.address if part == "SERVER" else part for part in arguments], environment)
                if number:
                    spent[name].append(seconds * 1000)
    print(f"{'processor milliseconds':32}{'least':>8}{'median':>8}")
    for name, found in spent.items():
        print(f"{name:32}{min(found):8.0f}{statistics.median(found):8.0f}")


def _run(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """The processor seconds of a Python with these arguments. Raises RuntimeError: it failed."""
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(sys.executable, [sys.executable, *arguments], environment, file_actions=silent)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"{arguments} failed with status {status}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
