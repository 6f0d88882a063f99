"""Whatever brokers do: a consumer gives every record once and in order, or reports what it cannot give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import kafkacodec as kc
from kafkacodec.client.consuming.positions import Position
from kafkacodec.errors import BrokerError
from tests.reference.model_broker import ModelCluster
from tests.reference.model_consumer import ModelConsumer
from tests.state_machines import machine_settings

TOPIC, PARTITIONS, NODES = "t", 3, 3
NUMBERS = st.integers(0, PARTITIONS - 1)
BROKERS = st.integers(1, NODES)
PASSING = [3, 5, 6, 9, 56, 74, 75, 78, 100, 103, -1]
FETCH = 1


class ConsumingMachine(RuleBasedStateMachine):
    """A consumer of some partitions on a cluster to which everything happens.

    A read that takes a partition from one position to another must give the records of its log between them: all those
    that the log still has, in order, each with the value that it had. Truncation and retention are what may pass
    over records, and truncation is what may show two values for one offset.
    """

    @initialize(
        committed=st.booleans(),
        version=st.sampled_from([4, 6, 11, 12, 13, 16, 18]),
        small=st.booleans(),
        rack=st.booleans(),
        late=st.booleans(),
    )
    def start(self, committed: bool, version: int, small: bool, rack: bool, late: bool) -> None:
        self.model = ModelCluster(NODES, {TOPIC: PARTITIONS}, versions={FETCH: range(4, version + 1)})
        options: dict[str, Any] = {"isolation_level": "read_committed"} if committed else {}
        if small:
            options |= {"max_partition_fetch_bytes": 150, "fetch_max_bytes": 400, "prefetch_bytes": 1000}
        if rack:
            options["client_rack"] = "here"
        self.committed = committed
        self.refused: BaseException | None = None
        options |= {"auto_offset_reset": "earliest", "value_deserializer": self.deserialize}
        self.read = ModelConsumer(self.model, late=late, **options)
        self.read.assign(*((TOPIC, number) for number in range(PARTITIONS)))
        self.values: dict[tuple[int, int], set[bytes]] = {}
        self.ends: dict[int, int] = {}  # where the application is, by partition
        self.truncated: set[int] = set()
        self.compacted: set[tuple[int, int]] = set()
        self.sequences: dict[tuple[int, int], int] = {}
        self.made = 0
        self.records: Any = None

    # The cluster

    @rule(number=NUMBERS, count=st.integers(1, 4), large=st.booleans())
    def produce(self, number: int, count: int, large: bool) -> None:
        self.append(number, count, large)

    @rule(number=NUMBERS, producer=st.integers(7, 8), count=st.integers(1, 3))
    def produce_in_a_transaction(self, number: int, producer: int, count: int) -> None:
        place = (number, producer)
        first = self.sequences.get(place, 0)
        self.sequences[place] = first + count
        options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": first, "is_transactional": True}
        self.append(number, count, False, **options)

    @rule(number=NUMBERS, commit=st.booleans())
    def end_transactions(self, number: int, commit: bool) -> None:
        log = self.model.logs[TOPIC, number]
        for producer in list(log.open):
            log.append_marker(producer, 0, commit=commit, epoch=self.model.leaders[TOPIC, number].epoch)

    @rule(number=NUMBERS, part=st.floats(0, 1))
    def delete_records(self, number: int, part: float) -> None:
        log = self.model.logs[TOPIC, number]
        log.delete_before(log.start + int((log.stable - log.start) * part))

    @rule(number=NUMBERS)
    def compact(self, number: int) -> None:
        self.compacted |= {(number, offset) for offset in self.model.logs[TOPIC, number].compact()}

    @precondition(lambda self: not self.committed)
    @rule(number=NUMBERS, part=st.floats(0.5, 1))
    def lose_records(self, number: int, part: float) -> None:
        log = self.model.logs[TOPIC, number]
        if log.batches and self.model.alive:
            self.truncated.add(number)
            self.model.lose(TOPIC, number, log.start + int((log.end - log.start) * part))
            self.compacted = {(n, offset) for n, offset in self.compacted if n != number or offset < log.end}
            for producer in (7, 8):
                known = log.producers.get(producer)
                last = known.recent[-1][1] + 1 if known is not None and known.recent else 0
                self.sequences[number, producer] = last

    @rule(number=NUMBERS)
    def move_leader(self, number: int) -> None:
        if self.model.alive:
            self.model.move_leader(TOPIC, number)

    @rule(node=BROKERS)
    def stop_broker(self, node: int) -> None:
        self.read.network.stop(node)

    @rule(node=BROKERS)
    def start_broker(self, node: int) -> None:
        self.model.start(node)

    @rule(node=BROKERS)
    def lose_sessions(self, node: int) -> None:
        self.model.sessions.lose(node)

    @rule(number=NUMBERS, node=st.one_of(st.none(), BROKERS))
    def read_from_a_follower(self, number: int, node: int | None) -> None:
        self.model.read_replicas.pop((TOPIC, number), None)
        if node is not None:
            self.model.read_replicas[TOPIC, number] = node

    @rule(node=BROKERS, hold=st.booleans())
    def hold_metadata(self, node: int, hold: bool) -> None:
        self.model.hold_metadata(node, hold)

    @rule(api=st.sampled_from(["Fetch", "ListOffsets", "OffsetForLeaderEpoch"]), code=st.sampled_from(PASSING))
    def fail(self, api: str, code: int) -> None:
        self.model.fail(api, code)

    @rule()
    def create_again(self) -> None:
        self.model.delete(TOPIC)
        self.model.create(TOPIC, PARTITIONS)
        self.truncated |= set(range(PARTITIONS))
        self.compacted.clear()
        self.sequences.clear()

    # The network

    @rule()
    def catch_up(self) -> None:
        self.read.catch_up()

    @rule(chosen=st.integers(0, 50), drop=st.sampled_from([False, False, True]))
    def step(self, chosen: int, drop: bool) -> None:
        busy = self.read.network.busy()
        if busy and drop:
            self.read.network.drop(busy[chosen % len(busy)])
        elif busy:
            link = busy[chosen % len(busy)]
            if not self.read.network.apply(link):
                self.read.network.deliver(link)

    @rule(ms=st.sampled_from([10, 100, 600, 40_000]))
    def time_goes_by(self, ms: float) -> None:
        self.read.network.advance(ms)

    @rule(ms=st.sampled_from([100, 700]))
    def all_arrives(self, ms: float) -> None:
        self.read.network.run(ms)

    # The application

    def deserialize(self, data: bytes) -> bytes:
        if self.refused is not None and data[-1:] in b"13":
            raise self.refused
        return data

    @rule(interrupt=st.booleans())
    def deserialize_no_more(self, interrupt: bool) -> None:
        """Until the next rule that reads ends: some records cannot be deserialized, or Ctrl-C comes."""
        self.refused = KeyboardInterrupt() if interrupt else LookupError("no such schema")

    @rule(rows=st.sampled_from([1, 3, 1000]))
    def read_columns(self, rows: int) -> None:
        self.look()
        table = self.reading(lambda: self.read.reader.columns(rows))
        found = (
            [] if table is None else zip(*(table[c].tolist() for c in ("partition", "offset", "value")), strict=True)
        )
        self.check(found)
        if table is not None:
            for (_, number), offset in table.next_offsets.items():
                position = self.read.state(number).position
                assert position is None or position.offset == offset  # None: it was reset at once
        else:
            self.check_processed()

    @rule(most=st.integers(1, 10))
    def read_lists(self, most: int) -> None:
        self.look()
        found = self.reading(lambda: self.read.reader.records_by_partition(most)) or {}
        records = [record for part in found.values() for record in part]
        assert len(records) <= most
        if not records:
            self.check_processed()
        self.check((record.partition, record.offset, record.value) for record in records)

    @rule(most=st.integers(1, 10))
    def iterate(self, most: int) -> None:
        self.look()
        records = self.reading(self.read.reader.iterated)
        if records is None:
            self.check_processed()
        taken = []
        for record in records or ():
            taken.append((record.partition, record.offset, record.value))
            if len(taken) == most:
                break
        self.read.reader.update_position()
        self.check(taken)

    @rule(numbers=st.sets(NUMBERS))
    def assign(self, numbers: set[int]) -> None:
        self.read.assign(*((TOPIC, number) for number in sorted(numbers)))

    @rule(number=NUMBERS, part=st.floats(0, 1))
    def seek(self, number: int, part: float) -> None:
        if not self.has(number):
            return
        log = self.model.logs[TOPIC, number]
        offset = log.start + int((log.stable - log.start) * part)
        self.read.positions.seek((TOPIC, number), Position(offset))
        self.read.network.poll()
        self.truncated.discard(number)

    @rule(number=NUMBERS, timestamp=st.sampled_from([-2, -1]))
    def seek_to_an_end(self, number: int, timestamp: int) -> None:
        if not self.has(number):
            return
        self.read.positions.look_up(self.read.state(number), timestamp)
        self.read.network.poll()

    @rule(number=NUMBERS, paused=st.booleans())
    def pause(self, number: int, paused: bool) -> None:
        if not self.has(number):
            return
        if paused:
            self.read.positions.pause((TOPIC, number))
        else:
            self.read.positions.resume((TOPIC, number))
        self.read.network.poll()

    # Helpers

    def append(self, number: int, count: int, large: bool, **options: Any) -> None:
        values = [b"%d-%d" % (self.made, n) + b"." * (200 * large) for n in range(count)]
        self.made += 1
        log, epoch = self.model.logs[TOPIC, number], self.model.leaders[TOPIC, number].epoch
        appended = log.append(kc.encode([(b"%d" % (self.made % 3), value) for value in values], **options), epoch)
        assert appended.code == 0
        for n, value in enumerate(values):
            self.values.setdefault((number, appended.base + n), set()).add(value)

    def reading(self, read: Any) -> Any:
        """A read; clusters with these policies cause no error, deserializers do."""
        try:
            return read()
        except BrokerError as error:
            raise AssertionError(f"a read failed: {error}") from error
        except (LookupError, KeyboardInterrupt):
            return None
        finally:
            self.refused = None

    def has(self, number: int) -> bool:
        """Whether the partition is assigned."""
        return (TOPIC, number) in self.read.positions.partitions

    def check_processed(self) -> None:
        """The application has nothing in hand."""
        for state in self.read.positions.partitions.values():
            assert state.processed == state.position

    def look(self) -> None:
        """Note where the application is."""
        self.read.reader.update_position()
        states = self.read.positions.partitions.values()
        self.ends = {s.number: s.position.offset for s in states if s.position is not None}

    def check(self, found: Iterable[tuple[int, int, bytes]]) -> None:
        """What a read gave is what the logs have between the positions before and after it."""
        given: dict[int, list[tuple[int, bytes]]] = {number: [] for number in range(PARTITIONS)}
        for number, offset, value in found:
            given[number].append((offset, value))
            assert value in self.values[number, offset]
        for number, records in given.items():
            offsets = [offset for offset, _ in records]
            assert offsets == sorted(set(offsets))
            state = self.read.positions.partitions.get((TOPIC, number))
            if number not in self.ends or state is None:
                assert not records
                continue
            if state.position is None:  # after these records the topic is another one, or a leader has lost some
                assert all(self.ends[number] <= offset for offset in offsets)
                continue
            first, last = self.ends[number], state.position.offset
            assert all(first <= offset < last for offset in offsets)
            assert not (state.paused and records)
            if number not in self.truncated:
                log = self.model.logs[TOPIC, number]
                held = log.committed if self.committed else log.records
                left = [o for o in offsets if o >= log.start and (number, o) not in self.compacted]
                assert left == [o for o, _, _ in held if first <= o < last]

    def teardown(self) -> None:
        """When all is well again, the consumer reads to the end."""
        if not hasattr(self, "read"):
            return
        for node in range(1, NODES + 1):
            self.model.start(node)
            self.model.hold_metadata(node, False)
        self.model._failures.clear()
        self.read.assign(*((TOPIC, number) for number in range(PARTITIONS)))
        for number in range(PARTITIONS):
            self.read.positions.resume((TOPIC, number))
        self.read.network.poll()
        self.refused = None
        for _ in range(60):
            self.read.catch_up()
            self.read.network.run(2000, until=lambda: self.read.reader.has_data)
            for _ in range(1000):
                self.look()
                table = self.reading(self.read.reader.columns)
                if table is None:
                    break
                rows = zip(*(table[c].tolist() for c in ("partition", "offset", "value")), strict=True)
                self.check(rows)
            self.read.catch_up()
            if self.at_end():
                break
        assert self.at_end()
        assert self.read.fetcher.kept_bytes == 0

    def at_end(self) -> bool:
        for number in range(PARTITIONS):
            log, position = self.model.logs[TOPIC, number], self.read.state(number).position
            last = log.batches[-1].last + 1 if log.batches else log.start  # truncation may leave a hole before the end
            if position is None or position.offset < min(last, log.stable if self.committed else log.end):
                return False
        return True


ConsumingMachine.TestCase.settings = machine_settings
TestConsuming = ConsumingMachine.TestCase
