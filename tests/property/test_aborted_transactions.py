"""Any interleaving of transactions: what a fetch drops is what the producers gave up."""

from hypothesis import given, strategies as st

import kafkacodec as kc
from kafkacodec import messages, protocol

Response = messages.FetchResponse

# (producer, what it does); 0 writes outside transactions.
ACTIONS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["write", "write", "abort", "commit"])), max_size=40)


def batch(producer, offset, *, control=False):
    made = bytearray(
        kc.encode(
            [(b"\0\0\0\0", b"v"), (b"\0\0\0\1", b"w")][: 1 if control else 2],
            base_offset=offset,
            producer_id=producer,
            producer_epoch=0,
            is_transactional=producer > 0,
        )
    )
    if control:
        made[22] |= 0x20
        made[17:21] = kc.crc32c(made[21:]).to_bytes(4, "big")
    return bytes(made)


@given(ACTIONS, st.booleans())
def test_aborted_transactions_and_no_others_are_dropped(actions, from_a_third):
    data, aborted, kept, offset = [], [], [], 0
    running = {}  # producer -> the offsets of its transaction
    for producer, action in actions:
        if action == "write":
            data.append(batch(producer, offset))
            (kept if producer == 0 else running.setdefault(producer, [])).extend((offset, offset + 1))
            offset += 2
        elif producer in running:
            data.append(batch(producer, offset, control=True))
            offsets = running.pop(producer)
            if action == "commit":
                kept += offsets
            else:
                aborted.append(Response.AbortedTransaction(producer_id=producer, first_offset=offsets[0]))
            offset += 1
    kept += [found for offsets in running.values() for found in offsets]
    start = offset // 3 if from_a_third else None
    partition = Response.PartitionData(records=b"".join(data), aborted_transactions=aborted)
    response = Response(responses=[Response.FetchableTopicResponse(topic="t", partitions=[partition])])
    columns = protocol.fetch_to_columns(response, isolation_level="read_committed", start_offset=start)
    assert columns["offset"].tolist() == sorted(found for found in kept if start is None or found >= start)
    assert columns.consumed == len(partition.records)
