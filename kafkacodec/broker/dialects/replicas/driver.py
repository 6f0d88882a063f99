"""Executes the decisions of replicas of the line protocol: asks other brokers, and changes logs and roles."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.dialects.line_files import FILES
from kafkacodec.broker.dialects.replicas.service import ReplicaService
from kafkacodec.broker.dialects.replicas.storage import LogView
from kafkacodec.dialects.line.connection import Dialer
from kafkacodec.dialects.line.errors import RequestRefused
from kafkacodec.dialects.line.exchange import Exchange
from kafkacodec.dialects.line.replicas import following
from kafkacodec.dialects.line.replicas.commands import REPLICA_COMMANDS
from kafkacodec.dialects.line.replicas.following import Diverged, NotElected, elect, follow, follow_groups
from kafkacodec.dialects.line.replicas.watching import Elect, Follow, Renew, Stop, Watch
from kafkacodec.errors import KafkaCodecError

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Running
    from kafkacodec.dialects.line.replicas.broker import Wish
    from kafkacodec.dialects.line.replicas.following import Steps

__all__ = ["Replicator"]

_log = logging.getLogger("kafkacodec.broker")

_TIMEOUT_MS: Final = 3_000
_LOOK_SECONDS: Final = 0.25  # between questions who leads
_SAVE_LOOKS: Final = 20  # after how many of them high watermarks are kept
_LINE_BYTES: Final = 64 << 20  # of an answer with one batch

Key = tuple[str, int]


class _Stale(Exception):
    """Another epoch was promised meanwhile."""


class Replicator:
    """The part of a broker that follows others and takes part in elections.

    Args:
        service: of this broker.
        addresses: of all brokers, by id.
        broker_id: of this one.
        needed: the number of promises that a leader needs, including its own.
    """

    def __init__(self, service: ReplicaService, addresses: list[tuple[str, int]], broker_id: int, needed: int) -> None:
        self._service, self._id, self._count, self._needed = service, broker_id, len(addresses), needed
        exchange = partial(Exchange, max_line_bytes=_LINE_BYTES, commands=REPLICA_COMMANDS)
        self._others = {
            number: Dialer(address, _TIMEOUT_MS, exchange)
            for number, address in enumerate(addresses)
            if number != broker_id
        }
        self._tasks: dict[Key, tuple[Follow | Elect | Renew, asyncio.Task[None]]] = {}
        self._looking: list[asyncio.Task[None]] = []

    def begin(self, runner: Running) -> None:
        """Start, once the topics are loaded."""
        self._runner, self._loop = runner, asyncio.get_running_loop()
        self._service.wished = self.wished
        self._machine, self._roles, self._storage = self._service.machine, self._service.roles, self._service.storage
        self._watch = Watch(self._machine, self._roles, self._others, self._needed)
        self._looking = [self._loop.create_task(self._ask_who_leads(number)) for number in self._others]
        for task in self._looking:
            task.add_done_callback(_told)

    async def end(self) -> None:
        """Stop, and store the high watermarks."""
        tasks = [*self._looking, *(task for _, task in self._tasks.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for dialer in self._others.values():
            dialer.close()
        self._roles.keep()

    def wished(self, wishes: dict[Key, Wish]) -> None:
        """Check the partitions that the machine names."""
        self._watch.wish(wishes)
        self._loop.call_soon(self._look, list(wishes))

    async def _ask_who_leads(self, number: int) -> None:
        """Ask for leaders, at intervals."""
        looks, since = 0, None
        while True:
            told: dict[str, Any] | None = None
            try:
                response = await self._others[number].demand("REPLICA_STATE", {"since": since})
                told = {"gone": (), **response.fields}
                since = told["version"]
                self._look(self._watch.heard(number, told))
            except (KafkaCodecError, OSError, KeyError) as error:
                _log.debug("replica %d: %s", number, error)
                since = None
                self._look(self._watch.heard(number, None))
            looks += 1
            if looks % _SAVE_LOOKS == 0:
                self._roles.keep()
            await asyncio.sleep(_LOOK_SECONDS)

    # Roles of partitions

    def _look(self, keys: Iterable[Key]) -> None:
        """Start and stop the tasks that each partition needs now."""
        for key in keys:
            try:
                self._look_at(key)
            except (KafkaCodecError, OSError) as error:
                _log.warning("%s-%d: %s", *key, error)

    def _look_at(self, key: Key) -> None:
        doing, task = self._tasks.get(key, (None, None))
        is_over = task is None or task.done()
        decision = self._watch.decide(key, None if is_over or isinstance(doing, Renew) else doing)
        match decision:
            case Follow(leader, epoch, partitions):
                self._storage.make(key[0], partitions)
                self._machine.promise(key, epoch)
                self._begin(key, decision, self._followed(key, leader, epoch))
            case Elect(needed):
                self._begin(key, decision, self._elected(key, needed))
            case Stop():
                self._end(key)
            case Renew(leader, epoch):
                self._begin(key, decision, self._renewed(key, leader, epoch))

    def _begin(self, key: Key, what: Follow | Elect | Renew, work: Coroutine[Any, Any, None]) -> None:
        self._end(key)
        task = self._loop.create_task(work)
        task.add_done_callback(_told)
        task.add_done_callback(lambda _: self._watch.ended(key))
        self._tasks[key] = what, task

    def _end(self, key: Key) -> None:
        _, task = self._tasks.pop(key, (None, None))
        if task is not None:
            task.cancel()

    # Execution

    async def _followed(self, key: Key, leader: int, epoch: int) -> None:
        role = self._roles[key]
        me = (self._id - leader) % self._count
        committed = self._machine.partition(*key).high_watermark
        steps = follow(LogView(self._storage, *key), key, leader, epoch, role.accepted, committed, me)
        groups = self._loop.create_task(self._followed_groups(key, leader, epoch, me)) if key[1] == 0 else None
        try:
            await self._kept()
            await self._carried_out(steps, key, epoch)
        except (RequestRefused, _Stale) as error:
            _log.info("%s-%d no longer follows broker %d: %s", *key, leader, error)
        except Diverged as error:
            _log.error("%s-%d does not follow broker %d: %s", *key, leader, error)
            await asyncio.sleep(_TIMEOUT_MS / 1000)
        except (KafkaCodecError, OSError) as error:
            _log.info("%s-%d follows broker %d again: %s", *key, leader, error)
        finally:
            if groups is not None:
                groups.cancel()

    async def _followed_groups(self, key: Key, leader: int, epoch: int, me: int) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self._carried_out(follow_groups(key[0], leader, epoch, me), key, epoch)
            except (_Stale, KafkaCodecError, OSError) as error:
                _log.info("the groups of %s are followed again: %s", key[0], error)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _elected(self, key: Key, needed: int) -> None:
        count = self._machine.count(key[0])
        try:
            self._storage.make(key[0], count)
            steps = elect(LogView(self._storage, *key), key, self._roles, self._id, self._count, needed, count)
            await self._carried_out(steps, key, None)
        except (NotElected, Diverged, _Stale, KafkaCodecError, OSError) as error:
            _log.warning("%s-%d cannot be led: %s", *key, error)
            self._run(self._machine.not_elected(key, str(error)))
            await asyncio.sleep(_LOOK_SECONDS)

    async def _renewed(self, key: Key, leader: int, epoch: int) -> None:
        args = {"topic": key[0], "partition": key[1], "epoch": epoch}
        try:
            await self._others[leader].demand("REPLICA_RENEW", args)
        except (KafkaCodecError, OSError) as error:
            _log.info("%s-%d: broker %d could not be asked for a new election: %s", *key, leader, error)

    async def _carried_out(self, steps: Steps, key: Key, epoch: int | None) -> None:
        """Execute the steps, unless a newer promise outdates `epoch`; the steps may make that promise themselves."""
        result: Any = None
        try:
            while True:
                step = steps.send(result)
                if isinstance(step, following.Promise):
                    epoch = step.epoch
                elif self._roles[key].promised != epoch:
                    raise _Stale(f"epoch {self._roles[key].promised} was promised")
                result = await _DOING[type(step)](self, step, key)
        except StopIteration:
            return

    async def _ask(self, step: following.Ask, key: Key) -> Any:
        response = await self._others[step.broker].demand(step.command, step.args)
        return response.fields

    async def _ask_all(self, step: following.AskAll, key: Key) -> Any:
        asked = {self._loop.create_task(dialer.demand(step.command, step.args)): number
                 for number, dialer in self._others.items()}  # fmt: skip
        answers: dict[int, Any] = {}
        waiting = set(asked)
        try:
            while waiting and sum(fields["granted"] for fields in answers.values()) < step.enough:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    if task.exception() is None:
                        answers[asked[task]] = task.result().fields
        finally:
            for task in waiting:
                task.cancel()
        return answers

    async def _truncate(self, step: following.Truncate, key: Key) -> None:
        end = self._storage.stored_end(*key)
        if step.offset < end:
            _log.warning("%s-%d: removing %d records from offset %d on, which were never committed",
                         *key, end - step.offset, step.offset)  # fmt: skip
        self._storage.truncate(*key, step.offset)

    async def _copy(self, step: following.Copy, key: Key) -> None:
        self._storage.copy(*key, step.records, step.epoch, step.start)

    async def _flush(self, step: following.Flush, key: Key) -> None:
        await self._flushed(key)

    async def _kept(self) -> None:
        """Wait until the disk has the roles and groups. Raises OSError."""
        if not self._service.files.is_saved:
            await self._flushed(FILES)

    async def _flushed(self, log: Any) -> None:
        done = self._loop.create_future()

        def flushed(error: Exception | None) -> None:
            if not done.done():
                done.set_exception(error) if error else done.set_result(None)

        self._runner.flush([log], flushed)
        await done

    async def _promise(self, step: following.Promise, key: Key) -> None:
        self._machine.promise(key, step.epoch)
        await self._kept()

    async def _accept(self, step: following.Accept, key: Key) -> None:
        self._roles.change(key, accepted=step.epoch)
        await self._kept()

    async def _lead(self, step: following.Lead, key: Key) -> None:
        self._roles.change(key, leads=True)
        await self._kept()
        if self._roles[key].promised != step.epoch:
            raise _Stale(f"epoch {self._roles[key].promised} was promised")
        self._storage.lead(*key, step.epoch)
        self._run(self._machine.lead(key, self._service.clock(self._runner.now)))

    async def _learn(self, step: following.Learn, key: Key) -> None:
        self._machine.learn(key, step.high_watermark)

    async def _keep_groups(self, step: following.KeepGroups, key: Key) -> None:
        self._machine.keep_groups(key, step.groups, step.epoch, step.ticket)
        await self._kept()

    def _run(self, replies: Any) -> None:
        self._runner.run(self._service.effect(replies))


_DOING: Final[Mapping[type, Callable[[Replicator, Any, Key], Awaitable[Any]]]] = {
    following.Ask: Replicator._ask,
    following.AskAll: Replicator._ask_all,
    following.Truncate: Replicator._truncate,
    following.Copy: Replicator._copy,
    following.Flush: Replicator._flush,
    following.Promise: Replicator._promise,
    following.Accept: Replicator._accept,
    following.Lead: Replicator._lead,
    following.Learn: Replicator._learn,
    following.KeepGroups: Replicator._keep_groups,
}


def _told(task: asyncio.Task[None]) -> None:
    """Log the failure of a task."""
    if not task.cancelled() and task.exception() is not None:
        _log.error("a replication task failed", exc_info=task.exception())
