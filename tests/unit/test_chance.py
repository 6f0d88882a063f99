"""The random numbers of applications stay theirs."""

from __future__ import annotations

import os
import random

import kafkacodec as kc
from kafkacodec.chance import RANDOM


def test_clients_and_brokers_leave_the_random_numbers_of_the_application_alone() -> None:
    before = random.getstate()
    with kc.broker.serve() as broker:
        servers = {"bootstrap_servers": broker.bootstrap_servers}
        with kc.client.Producer(**servers) as producer:
            for _ in range(100):
                producer.send("orders", b"x").result()
        with kc.client.Consumer("orders", auto_offset_reset="earliest", **servers) as consumer:
            assert next(iter(consumer)).value == b"x"
    assert random.getstate() == before


def test_forked_processes_draw_other_numbers() -> None:
    reader, writer = os.pipe()
    state = RANDOM.getstate()
    child = os.fork()
    if not child:
        os.write(writer, b"same" if RANDOM.getstate() == state else b"other")
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader, "rb") as found:
        assert found.read() == b"other"
