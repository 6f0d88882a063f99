"""What several files use: one Spark session, since it takes seconds to start; a broker for each test; the command."""

import os
import threading
from unittest.mock import patch

import pytest

from tests.corpus import sample
from tests.integration import kafka_jvm, ready_python, spark_archive
from tests.integration.cli_samples import SEGMENT
from tests.integration.kafka_jars import ALL_RELEASES
from tests.integration.old_kafka import broker_of
from tests.patience import eventually

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
spark_archive.use()
ready_python.prepare()


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    import kafkacodec as kc

    # Spark's Python workers have to find the package that is tested.
    os.environ["PYTHONPATH"] = os.pathsep.join([ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.driver.memory": "1g",
    }
    with patch.dict(os.environ):
        ready_python.use()
        session = kc.spark.session(conf, master="local[2]", quick_start=True)
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def no_client_left():
    """What a file's tests leave running would log, and count as threads and descriptors, in tests of other files."""
    from kafkacodec.spark.live import connections

    yield
    connections.close_all()
    eventually(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("kafkacodec ")])


@pytest.fixture
def kafkacodec(capsys):
    """Run the command; gives exit code, standard output and standard error."""
    from kafkacodec.cli.__main__ import run

    def call(*arguments):
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def kafkacodec_bytes(capfdbinary):
    """Run the command; gives exit code and standard output as bytes."""
    from kafkacodec.cli.__main__ import run

    def call(*arguments):
        code = run([str(argument) for argument in arguments])
        return code, capfdbinary.readouterr().out

    return call


@pytest.fixture
def broker(tmp_path):
    broker = kafka_jvm.Broker(tmp_path)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def plain_broker(tmp_path_factory):
    """For files with topics of their own: a broker that makes none by itself, and is Kafka's in all else."""
    broker = kafka_jvm.Broker(tmp_path_factory.mktemp("broker"), auto_create_topics_enable="false")
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def damaged(tmp_path):
    """A real segment with a wrong checksum in the first batch after byte 2000."""
    data = bytearray(sample(SEGMENT).data())
    batch = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)
    data[batch["position"] + 70] ^= 1
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    return path


@pytest.fixture(scope="session", params=ALL_RELEASES)
def release(request):
    """Each release of `ALL_RELEASES`, or of those that a file names."""
    return str(request.param)


@pytest.fixture(scope="session")
def server(release, tmp_path_factory):
    """A broker of each release, which the files of `tests.scheduling.ALL_AGES` share."""
    made = broker_of(tmp_path_factory.mktemp("broker"), release)
    made.start()
    yield made
    made.kill()  # in good order, some take 4 seconds
