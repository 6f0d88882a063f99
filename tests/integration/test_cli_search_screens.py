"""Sessions of ``kafkacodec dump`` on terminals of 80 and 200 columns, as they should look."""

import pytest

from kafkacodec.cli.__main__ import DONE
from tests.integration.cli_samples import BROKER
from tests.terminal import on_a_terminal

# Offsets, times, keys and values are those in tests/data/kafka/expected.
MARKERS = """\
offset  timestamp (UTC)          key     value
  1049  2026-11-21 07:05:36.618  COMMIT  producer_id=17 producer_epoch=19 coordinator_epoch=0
  1050  2026-11-21 07:05:36.621  ABORT   producer_id=18 producer_epoch=17 coordinator_epoch=0
  1051  2026-11-21 07:05:36.624  ABORT   producer_id=19 producer_epoch=20 coordinator_epoch=0
"""
OFFSETS = """\
partition             offset  timestamp (UTC)          key                                                       value
__consumer_offsets-0      25  2026-11-21 07:05:33.995  OffsetCommit group=group-314 topic=gzip partition=0       \
offset=8 leader_epoch=-1 metadata="мета 5" commit_timestamp=1795244733995 topic_id=000…
__consumer_offsets-1      80  2026-11-21 07:05:41.474  OffsetCommit group=txgroup topic=compact-txn partition=0  \
offset=817 leader_epoch=-1 metadata=meta-817 commit_timestamp=1795244741474 topic_id=0…
"""
OFFSETS_80 = """\
partition       offset  timestamp (UTC)          key             value
…mer_offsets-0      25  2026-11-21 07:05:33.995  OffsetCommit …  offset=8 leade…
…mer_offsets-1      80  2026-11-21 07:05:41.474  OffsetCommit …  offset=817 lea…
"""
SEARCH = """\
offset  value
     2  {"id":2,"user":"u301","kind":"latency","amount":1084.89,"note":"order u…
    21  {"id":21,"user":"u258","kind":"shipping","amount":8718.95,"note":"parti…
"""


@pytest.mark.parametrize(
    ("columns", "arguments", "screen"),
    [
        (200, ["--topic", "txn", "--control", "--tail", 3, "--columns", "offset,timestamp,key,value"], MARKERS),
        (200, ["--topic", "__consumer_offsets", "--tail", 1], OFFSETS),
        (80, ["--topic", "__consumer_offsets", "--tail", 1], OFFSETS_80),
        (80, ["--topic", "mixed", "--grep", "broker", "-n", 2, "--columns", "offset,value"], SEARCH),
    ],
)
def test_screens(columns, arguments, screen):
    code, shown = on_a_terminal("dump", BROKER, *arguments, columns=columns)
    assert code == DONE
    assert shown.replace("\r\n", "\n") == screen
