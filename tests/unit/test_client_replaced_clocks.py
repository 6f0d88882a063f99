"""Applications whose tests stop Python's clock, or whose threads are gevent's."""

from __future__ import annotations

import sys
import time
from types import ModuleType

import pytest

import kafkacodec as kc
from kafkacodec.errors import LocalProtocolError


def test_clients_for_threads_go_on_where_python_s_clock_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """freezegun replaces `time.monotonic`; nothing was sent, since no time limit was ever over."""
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    with kc.broker.serve(topics={"t": 1}) as broker:
        with kc.client.Producer(broker.bootstrap_servers) as producer:
            assert producer.send("t", b"frozen").result(60).offset == 0
        options = {"group_id": "g", "auto_offset_reset": "earliest"}
        with kc.client.Consumer("t", bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
            ((record,),) = consumer.getmany(timeout=60).values()
        assert (record.value, record.timestamp) == (b"frozen", 1_700_000_000_000)


@pytest.mark.parametrize("replaced", ["threading", "select"])
def test_threads_of_gevent_are_refused(replaced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`result` said that it was called in a callback, or everything stopped."""
    monkey = ModuleType("gevent.monkey")
    monkey.is_module_patched = lambda name: name == replaced  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gevent.monkey", monkey)
    with pytest.raises(LocalProtocolError, match=r"patch_all\(thread=False, select=False\)"):
        kc.client.Producer("127.0.0.1:1")
    monkey.is_module_patched = lambda name: False  # type: ignore[attr-defined]
    kc.client.Producer("127.0.0.1:1").close()
