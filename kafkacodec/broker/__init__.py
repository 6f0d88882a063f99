"""A broker: Kafka's protocol over files that Kafka can read.

>>> import kafkacodec as kc
>>> with kc.broker.serve(topics={"orders": 3}) as kafka:
...     offset = kafka.write("orders", [(b"1", b"one"), (b"2", b"two")])
...     kafka.records("orders")["value"].tolist()
[b'one', b'two']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.lazy import at_first_use

# Public name -> the module that holds it; "" for modules.
_HOMES = {"Broker": "embedded", "Injection": "injecting", "Statistics": "statistics", "aio": "", "serve": "embedded"}

__all__ = ["Broker", "Injection", "Statistics", "aio", "serve"]

if TYPE_CHECKING:
    from kafkacodec.broker import aio as aio
    from kafkacodec.broker.embedded import Broker as Broker, serve as serve
    from kafkacodec.broker.injecting import Injection as Injection
    from kafkacodec.broker.statistics import Statistics as Statistics

__getattr__ = at_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)
