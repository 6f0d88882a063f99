"""Fetch requests, made from the plan of a session."""

from __future__ import annotations

import uuid
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.client.consuming.session import FetchPlan
from kafkacodec.client.consuming.settings import ConsumerSettings

__all__ = ["fetch_request"]

_NO_ID: Final = uuid.UUID(int=0)


def fetch_request(plan: FetchPlan, settings: ConsumerSettings, max_bytes: int, wait_ms: float) -> Any:
    """A Fetch request for a plan; the answer has at most `max_bytes` and takes at most `wait_ms`."""
    kind = messages.FetchRequest
    request = kind(
        max_wait_ms=int(wait_ms),
        min_bytes=settings.fetch_min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(settings.isolation_level == "read_committed"),
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        rack_id=settings.client_rack or "",
    )
    topics: dict[tuple[str, uuid.UUID | None], list[Any]] = {}
    for (topic, number), entry in plan.changed.items():
        topics.setdefault((topic, entry.topic_id), []).append(
            kind.FetchPartition(
                partition=number,
                fetch_offset=entry.offset,
                current_leader_epoch=entry.leader_epoch,
                partition_max_bytes=entry.max_bytes,
            )
        )
    request.topics = [
        kind.FetchTopic(topic=name, topic_id=topic_id or _NO_ID, partitions=partitions)
        for (name, topic_id), partitions in topics.items()
    ]
    forgotten: dict[tuple[str, uuid.UUID | None], list[int]] = {}
    for (topic, number), topic_id in plan.forgotten:
        forgotten.setdefault((topic, topic_id), []).append(number)
    request.forgotten_topics_data = [
        kind.ForgottenTopic(topic=name, topic_id=topic_id or _NO_ID, partitions=numbers)
        for (name, topic_id), numbers in forgotten.items()
    ]
    return request
