"""Uploads to tiered storage, as its plugin writes them."""

import itertools
import json

import kafkacodec as kc
from kafkacodec.log.formats.checkpoints import encode_producer_snapshot

TOPIC = "t-dlPtJqO1Sb-W-Oym9Umc5w"


def upload(directory, segment_id, epochs, batches, history, snapshot=None):
    """Write an upload as the plugin does with neither compression nor encryption.

    `epochs` are the leader epochs of the segment, `history` those of the log at its end, each with its first offset.
    """
    data = b"".join(batches)
    headers = kc.scan(data)
    start, end = int(headers["base_offset"][0]), int(headers["last_offset"][-1])
    checkpoint = "\n".join(["0", str(len(history)), *(f"{epoch} {first}" for epoch, first in history.items())]).encode()
    parts = {"offset": b"", "timestamp": b"", "producerSnapshot": snapshot or b"", "leaderEpoch": checkpoint}
    positions = itertools.accumulate(map(len, parts.values()), initial=0)
    size = {"originalChunkSize": len(data), "transformedChunkSize": len(data)}
    manifest = {
        "version": "1",
        "chunkIndex": {
            "type": "fixed", **size, "originalFileSize": len(data), "finalTransformedChunkSize": len(data),
        },
        "segmentIndexes": {
            name: {"position": position, "size": len(part)}
            for (name, part), position in zip(parts.items(), positions, strict=False)
        },
        "compression": False,
        "remoteLogSegmentMetadata": {
            "remoteLogSegmentId": {
                "topicIdPartition": {
                    "topicId": TOPIC.partition("-")[2], "topicPartition": {"topic": "t", "partition": 0},
                },
                "id": segment_id * 22,
            },
            "startOffset": start,
            "endOffset": end,
            "eventTimestampMs": 1_700_000_000_000 + end,
            "segmentLeaderEpochs": {str(epoch): first for epoch, first in epochs.items()},
        },
    }  # fmt: skip
    stem = directory / f"{start:020}-{segment_id * 22}"
    stem.with_suffix(".log").write_bytes(data)
    stem.with_suffix(".indexes").write_bytes(b"".join(parts.values()))
    stem.with_suffix(".rsm-manifest").write_text(json.dumps(manifest))


def snapshot(producer, open_from):
    """The state of the producers at the end of a segment: one, and where its transaction began."""
    return encode_producer_snapshot([(producer, 0, 0, 0, 0, 0, 0, open_from)])


def records(first, count, epoch, producer=None):
    owner = {} if producer is None else {"producer_id": producer, "producer_epoch": 0, "is_transactional": True}
    if producer is not None:
        owner["base_sequence"] = first
    rows = [(b"k", f"{epoch}:{offset}".encode()) for offset in range(first, first + count)]
    return kc.encode(rows, base_offset=first, partition_leader_epoch=epoch, **owner)
