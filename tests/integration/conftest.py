"""One Spark session for all tests that need one, since it takes seconds to start; a broker for each that needs one."""

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
def broker(tmp_path):
    broker = kafka_jvm.Broker(tmp_path)
    broker.start()
    yield broker
    broker.stop()
