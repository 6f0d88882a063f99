"""A broker with replicas as a process: python -m tests.replicas.server DATA ID URL,URL,…"""

from __future__ import annotations

import signal
import sys

import kafkacodec as kc


def main(data: str, number: str, replicas: str) -> None:
    """Serve until it is killed."""
    urls = replicas.split(",")
    config = {"num.partitions": 2, "replica.lag.time.max.ms": 500}
    with kc.broker.serve(data, listen=urls[int(number)], node_id=int(number), replicas=urls, config=config):
        print("ready", flush=True)
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
