"""The models of a cluster and of a group's coordinator behind a socket, for whole consumers in tests without a JVM.

A share group has the first partition of the first topic, in `share`.

async with GroupBroker({"t": 2}) as broker:
    broker.write("t", 0, 10)                        # ten records
    consumer = aio.Consumer("t", bootstrap_servers=broker.address, group_id="g")
    broker.refuse("OffsetCommit", 14)               # the next one is answered with an error
    broker.committed, broker.commits                # what is committed now, and all commits in their order
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import count
from typing import Any, Self

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.messages.keys import (
    API_VERSIONS,
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    SHARE_GROUP_HEARTBEAT,
    SYNC_GROUP,
)
from kafkacodec.protocol import Connection
from tests.reference.model_broker import ModelCluster
from tests.reference.model_coordinators import ClassicCoordinator, ModernCoordinator
from tests.reference.model_shares import TOPIC_ID, ShareBroker

__all__ = ["GroupBroker"]

_OF_GROUPS = frozenset({JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT})
_IDS_VERSION = 10


class GroupBroker:
    """One broker with one group.

    Attributes:
        model: the cluster.
        coordinator: of the group.
        committed: offset by (topic, partition).
        commits: (topic, partition, offset) of all that was committed, in order.
        members_gone: how many members said that they leave.
    """

    def __init__(self, topics: dict[str, int], *, modern: bool = False) -> None:
        self.model = ModelCluster(topics=topics)
        self.model.topic_ids[next(iter(topics))] = TOPIC_ID
        self.share = ShareBroker(0, lambda *_: None)
        known = {name: (self.model.topic_ids[name], partitions) for name, partitions in topics.items()}
        self.coordinator: Any = ModernCoordinator(known) if modern else ClassicCoordinator()
        self.committed: dict[tuple[str, int], int] = {}
        self.commits: list[tuple[str, int, int]] = []
        self.members_gone = 0
        self._refusals: deque[tuple[str, int]] = deque()
        self._tokens = count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def write(self, topic: str, partition: int, number: int) -> None:
        """Append records."""
        log = self.model.logs[topic, partition]
        log.append(kc.encode([(None, b"%d" % n) for n in range(number)]), 0)

    def refuse(self, api: str, *codes: int) -> None:
        """Answer the next requests of an API with these errors."""
        self._refusals.extend((api, code) for code in codes)

    def progress(self) -> None:
        """Send the answers that the coordinator has now, such as after `coordinator.expire`."""
        for token in self.coordinator.ready.keys() & self._waiting.keys():
            future = self._waiting.pop(token)
            response = self.coordinator.ready.pop(token)
            if not future.done():
                future.set_result(response)

    # The server

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        self._clock = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        tasks = {self._clock, *self._tasks}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)

    @property
    def address(self) -> str:
        """To connect to."""
        return f"127.0.0.1:{self._port}"

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.005)
            self.model.advance(5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = Connection("broker")
        try:
            while data := await reader.read(65536):
                for event in connection.receive(data):
                    response = await self._answer(connection, event)
                    writer.write(connection.send_response(event.correlation_id, response))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, connection: Connection, event: Any) -> Any:
        """One request of a connection is answered after the other, as brokers do."""
        key, version = event.api_key, event.version
        if key == API_VERSIONS:
            return connection.api_versions(event)
        code = self._refusal(messages.APIS[key].name)
        if key in _OF_GROUPS:
            return messages.by_key(key)[1](error_code=code) if code else await self._grouped(event.message)
        if key in (SHARE_GROUP_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE):
            return await self._shared(key, event.message, code)
        if key == OFFSET_COMMIT:
            return self._commit(event.message, version, code)
        if key == OFFSET_FETCH:
            return self._offsets(event.message, version)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.model.receive(1, event.message, version, lambda found: None if future.done() else future.set_result(found))
        return self._at_home(await future, key)

    def _refusal(self, api: str) -> int:
        for refusal in self._refusals:
            if refusal[0] == api:
                self._refusals.remove(refusal)
                return refusal[1]
        return 0

    def _at_home(self, response: Any, key: int) -> Any:
        """The response with this server's address in it."""
        entries = response.brokers if key == METADATA else response.coordinators if key == FIND_COORDINATOR else ()
        for entry in entries:
            entry.host, entry.port = "127.0.0.1", self._port
        return response

    # The group

    async def _grouped(self, request: Any) -> Any:
        token = next(self._tokens)
        self._waiting[token] = future = asyncio.get_running_loop().create_future()
        self.members_gone += isinstance(request, messages.LeaveGroupRequest) or getattr(request, "member_epoch", 0) < 0
        self.coordinator.handle(request, token)
        self.progress()
        return await future

    def _commit_error(self, request: Any) -> int:
        if request.generation_id_or_member_epoch < 0:
            return 25 if self.coordinator.members else 0
        member, generation = request.member_id, request.generation_id_or_member_epoch
        if not self.coordinator.knows(member):
            return 25
        if isinstance(self.coordinator, ModernCoordinator):
            return 113 if self.coordinator.members[member].epoch != generation else 0
        if self.coordinator.generation != generation:
            return 22
        return 27 if self.coordinator.state == "Completing" else 0

    def _commit(self, request: Any, version: int, code: int) -> Any:
        kind = messages.OffsetCommitResponse
        code = code or self._commit_error(request)
        response = kind()
        for topic in request.topics:
            name = self.model.topic_name(topic.topic_id) if version >= _IDS_VERSION else topic.name
            assert name is not None
            entry = kind.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
            for partition in topic.partitions:
                number, offset = partition.partition_index, partition.committed_offset
                entry.partitions.append(kind.OffsetCommitResponsePartition(partition_index=number, error_code=code))
                if not code:
                    self.committed[name, number] = offset
                    self.commits.append((name, number, offset))
            response.topics.append(entry)
        return response

    def _offsets(self, request: Any, version: int) -> Any:
        kind = messages.OffsetFetchResponse
        (group,) = request.groups
        found = kind.OffsetFetchResponseGroup(group_id=group.group_id)
        for topic in group.topics:
            name = self.model.topic_name(topic.topic_id) if version >= _IDS_VERSION else topic.name
            assert name is not None
            entry = kind.OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id)
            for number in topic.partition_indexes:
                offset = self.committed.get((name, number), -1)
                entry.partitions.append(
                    kind.OffsetFetchResponsePartitions(partition_index=number, committed_offset=offset)
                )
            found.topics.append(entry)
        return kind(groups=[found])

    async def _shared(self, key: int, request: Any, code: int) -> Any:
        kind = messages.by_key(key)[1]
        if code:
            return kind(error_code=code)
        if key != SHARE_GROUP_HEARTBEAT:
            response = self.share.handle(request, self.model.now)
            if (
                key == SHARE_FETCH
                and not response.error_code
                and not response.responses[0].partitions[0].acquired_records
            ):
                await asyncio.sleep(0.02)
            return response
        response = messages.ShareGroupHeartbeatResponse(member_id=request.member_id, heartbeat_interval_ms=50)
        response.member_epoch = min(request.member_epoch, 0) or 1
        topics = [response.TopicPartitions(topic_id=TOPIC_ID, partitions=[0])]
        response.assignment = response.Assignment(topic_partitions=topics)
        return response
