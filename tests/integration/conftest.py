"""What several files use: one Spark session, since it takes seconds to start; a broker for each test; the command."""

import os

import pytest

from tests.integration import kafka_jvm

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


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
    session = kc.spark.session(conf, master="local[2]", quick_start=True)
    yield session
    session.stop()


@pytest.fixture
def kafkacodec(capsys):
    """Run the command; gives exit code, standard output and standard error."""
    from kafkacodec.cli.__main__ import run

    def call(*arguments):
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def broker(tmp_path):
    broker = kafka_jvm.Broker(tmp_path)
    broker.start()
    yield broker
    broker.stop()
