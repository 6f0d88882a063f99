"""What a broker loads before it serves: tests wait for it in each process."""

from __future__ import annotations

import subprocess
import sys

NEEDLESS = ("pyarrow", "pandas", "kafkacodec.client", "kafkacodec.log.partitions", "kafkacodec.log.checking",
            "kafkacodec.log.order", "kafkacodec.dialects", "kafkacodec.spark")  # fmt: skip
SCRIPT = """
import sys
import kafkacodec as kc
with kc.broker.serve(topics={"t": 1}):
    print(*sys.modules)
"""


def test_a_broker_does_not_load_what_reads_damaged_logs_nor_clients_nor_arrow():
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=True)
    loaded = run.stdout.split()
    assert "kafkacodec.broker.serving" in loaded
    assert [name for name in loaded if name in NEEDLESS] == []
