# cython: embedsignature=False
# Records into the open batches of a producer, one at a time.
#
# Sending threads add to an open batch without the lock of the queues: from the look at `sealed` to the end of
# `Appending.add` no Python code runs, so that no other thread does, and no signal handler. A thread that has the lock
# sets `sealed` before it relies on the size of an open batch. Rows of small tables are added likewise.
from cpython.dict cimport PyDict_GetItemWithError
from cpython.long cimport PyLong_CheckExact
from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MAX, int64_t
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

from kafkacodec._core cimport encode as k
from kafkacodec.client.producing._batch cimport BatchBuilder, as_bytes, fill, header_pairs
from kafkacodec.client.producing._callbacks cimport Callback, Callbacks
from kafkacodec.client.producing._delivery cimport Delivery, TableDelivery
from kafkacodec.client.producing._row_cells cimport RowCells, parts_of

from collections.abc import Iterable, Mapping

from kafkacodec.client.checks import partition_number
from kafkacodec.client.core.foreign_options import unknown_options
from kafkacodec.client.producing.outcome import Part, TableOutcome
from kafkacodec.errors import EncodeError


cdef enum:
    FIRST_ROWS = 8          # that are looked up at first: the next one may have no open batch
    FEW = 256               # rows: the minimum cost of the encoder of whole tables is as much
    FEW_OF_PARTITION = 16   # rows: likewise, with what it takes to send a batch of them alone

SEQUENCES = 2**31


cdef inline int64_t now_ms() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <int64_t> now.tv_sec * 1000 + now.tv_nsec // 1000000


cdef class OpenBatch:
    pass


cdef class OpenQueue:
    pass


cdef class OpenTopic:
    pass


cdef class Appending:
    def __init__(self, is_owned, int64_t memory, int64_t most):
        self.topics = {}
        self.ready = {}
        self.pending = {}
        self.active = {}
        self.is_owned = is_owned
        self.memory = memory
        self.most = most

    cdef void take(self, int64_t size) noexcept:
        self.bytes += size
        if self.bytes >= self.memory:
            self.full = True

    cpdef close(self, OpenQueue queue):
        cdef OpenBatch batch = queue.open
        cdef OpenTopic topic
        if batch is not None:
            batch.sealed = True
            queue.open = None
            queue.waiting.append(batch)
            topic = self.topics[queue.topic]
            if topic.sticky is queue:
                topic.sticky = None

    cpdef begin(self, OpenQueue queue, OpenBatch batch):
        if batch is queue.open:
            self.close(queue)
        queue.waiting.popleft()
        queue.flying.append(batch)
        if batch.sequence < 0 and queue.producer is not None and queue.producer[0] >= 0:
            batch.producer, batch.sequence = queue.producer, queue.next_sequence
            queue.next_sequence = (queue.next_sequence + batch.count) % SEQUENCES
        batch.attempts += 1

    cpdef resolved(self, OpenBatch batch):
        self.pending.pop(batch, None)
        self.free(batch.size)

    cpdef free(self, int64_t size):
        self.bytes -= size
        if self.full and self.bytes <= self.memory // 2:
            self.full = False
            self.drained += 1

    def choose(self, OpenTopic topic not None, partition, key):
        cdef k.kc_cell cell
        own = as_bytes(key, "key")
        fill(&cell, own)
        return self.chosen(topic, partition, &cell)

    cdef OpenQueue chosen(self, OpenTopic topic, partition, const k.kc_cell *key):
        """The queue of a partition, of a key, or for records without a key; None if there is none yet."""
        cdef list queues
        if partition is not None:
            if not PyLong_CheckExact(partition):
                partition = partition_number(partition)
            return <OpenQueue?> topic.queues[partition] if partition in topic.present else None
        if key.size < 0:
            return topic.sticky
        queues = topic.in_order
        return <OpenQueue?> queues[k.kc_murmur2_partition(key.data, key.size, <int> len(queues))]

    def put(self, OpenTopic topic not None, OpenBatch batch not None, key, value, headers, int64_t timestamp):
        cdef k.kc_new_record record
        own_key, own_value = as_bytes(key, "key"), as_bytes(value, "value")
        fill(&record.key, own_key)
        fill(&record.value, own_value)
        record.timestamp = timestamp
        return self.place(topic, batch, &record, header_pairs(headers))

    cdef Delivery place(self, OpenTopic topic, OpenBatch batch, k.kc_new_record *record, headers):
        """Add a record to a batch; None if it is full or closed."""
        cdef Delivery made = Delivery.__new__(Delivery)  # first, since garbage may be collected here
        made._index = batch.count
        if not self.add(topic, batch, record, headers):
            return None
        made._timestamp = record.timestamp
        made._outcome = batch.outcome
        return made

    cdef bint add(self, OpenTopic topic, OpenBatch batch, k.kc_new_record *record, headers) except -1:
        """Add a record to a batch; returns whether it has room and is open."""
        cdef int64_t added
        if batch.sealed or batch.builder is None:
            return False
        added = batch.builder.add(record, headers, topic.batch_limit, self.most)
        if not added:
            return False
        batch.count += 1
        batch.size += added
        if batch.pends:
            self.take(added)
        return True

    cdef int64_t add_rows(self, OpenTopic topic, int64_t row, FewRows few) except -1:
        """Add rows of a part to open batches, from `row` on; returns the first that has none or is refused, or how many
        rows there are."""
        cdef k.kc_spans keys, values
        cdef k.kc_new_record record
        cdef OpenQueue queue
        cdef OpenBatch batch
        cdef RowCells rows = few.part
        cdef int64_t at = 0, loaded = 0, step = FIRST_ROWS, end = rows.array.array.length
        record.timestamp = now_ms()
        try:
            while row < end:
                if at == loaded:
                    at, loaded = 0, rows.load(row, min(end, row + step), &keys, &values)
                    step *= 4
                record.key.data, record.key.size = keys.data[at], keys.size[at]
                record.value.data, record.value.size = values.data[at], values.size[at]
                queue = self.chosen(topic, few.partition, &record.key)
                batch = None if queue is None else queue.open
                if self.full or batch is None or not self.add(topic, batch, &record, few.pairs):
                    break
                few.extend(batch.outcome, batch.count - 1)
                at += 1
                row += 1
        except EncodeError:
            pass  # adding the row alone raises it again
        return row

    def few_rows(self, name, data):
        return self.few(name, data)

    cdef FewRows few(self, name, data):
        """See `few_rows`."""
        cdef list parts
        cdef FewRows made
        if type(name) is not str or name not in self.ready or self.is_owned():
            return None
        parts = parts_of(data)
        topic = self.ready.get(name)    # asking for the data may have taken long
        if parts is None or topic is None or not self.has_few(topic, parts):
            return None
        made = FewRows.__new__(FewRows)
        made.fill(self, name, parts)
        return made

    def are_few(self, OpenTopic topic not None, list parts not None):
        return self.has_few(topic, parts)

    cdef bint has_few(self, OpenTopic topic, list parts) except -1:
        """Whether rows are better added one by one than encoded as a table: if they are few for a batch.

        A row of more than half of what is allowed may be compressed, and so is left to the encoder of tables.
        """
        cdef RowCells part
        cdef int64_t rows = 0, size = 0, largest = 0, partitions = 1
        for part in parts:
            rows += part.array.array.length
            size += part.size()
            if part.has_keys():   # other rows go to one partition until its batch is full
                partitions = len(topic.in_order)
        if rows > max(<int64_t> FEW, FEW_OF_PARTITION * partitions) or size > topic.batch_limit * partitions:
            return False
        if size > self.most // 2:
            for part in parts:
                largest = max(largest, part.largest())
        return largest <= self.most // 2

    def pend(self, OpenQueue queue not None, OpenBatch batch not None):
        if batch.builder is not None:
            queue.open = batch
        batch.pends = True
        self.pending[batch] = None
        self.active[queue] = None
        self.take(batch.size)

    def append_open(self, name, key, value, headers, partition, timestamp):
        return self.append_to_open(name, key, value, headers, partition, timestamp)

    cdef Delivery append_to_open(self, name, key, value, headers, partition, timestamp):
        """Add a record, where its batch is open and nothing has to be waited for; else None."""
        cdef OpenTopic topic
        cdef OpenQueue queue
        cdef PyObject *found
        cdef bytes own_key, own_value
        cdef k.kc_new_record record
        record.timestamp = 0
        if self.full or type(name) is not str:
            return None
        found = PyDict_GetItemWithError(self.ready, name)
        if found == NULL or self.is_owned():
            return None
        topic = <OpenTopic> found
        if timestamp is not None:
            if type(timestamp) is not int or not 0 <= timestamp <= INT64_MAX:
                return None
            record.timestamp = timestamp
        if type(headers) is not tuple and type(headers) is not list and type(headers) is not dict:
            return None  # it may not have them a second time
        pairs = header_pairs(headers)
        own_key = as_bytes(key, "key")
        own_value = as_bytes(value, "value")
        fill(&record.key, own_key)
        fill(&record.value, own_value)
        queue = self.chosen(topic, partition, &record.key)
        if queue is None or queue.open is None:
            return None
        if timestamp is None:
            record.timestamp = now_ms()
        return self.place(topic, queue.open, &record, pairs)


cdef class RowRun(Callback):
    """Consecutive records of a batch, `_index` to `end`, that are rows of a table from `row` on.

    Those that are known already are left out.
    """
    cdef int run(self) except -1:
        """Pass known outcomes to the table, and wait for more."""
        while self._index < self.end:
            part = self.batch.find(self._index)
            if part is not None:
                self.tell(<tuple> part)
            elif self.batch.append_first(self) or not self.batch.when(self._index, self):
                return 0
        return 0

    cdef bint settle(self) except -1:
        while self._index < self.end:
            part = self.batch.find(self._index)
            if part is None:
                return False
            self.tell(<tuple> part)
        return True

    cdef int tell(self, tuple part) except -1:
        """Add the outcome of the first records to that of the table."""
        cdef int64_t end = part[0], first = part[1], offset = part[4]
        cdef int64_t count = min(self.end, end) - self._index
        cdef Callbacks table = self.table
        offset = offset + self._index - first if offset >= 0 else -1
        made = (self.row + count, self.row, part[2], part[3], offset, part[5], part[6])
        if part[6] is not None and self.batch.unseen is not None:
            self.batch.unseen.hand_over(self._index, self._index + count, table, self.row, part[2], part[6])
        # Without the lock: no other thread runs Python until all is counted. One that begins to wait looks afterwards.
        table.parts.append(tuple.__new__(Part, made))   # what the class does, without its call
        self._index += count
        self.row += count
        table.resolved += count
        if table.failure is None:
            table.failure = part[6]
        if table.whole and table.resolved == table.queued and (table.waiters or table.callbacks):
            table.finish()
        return 0


cdef class FewRows:
    def __init__(self, Appending queues not None, str topic not None, list parts not None, partition=None, headers=()):
        if not isinstance(headers, (list, tuple, Mapping)) and isinstance(headers, Iterable):
            headers = list(headers)  # asked for again where no batch is open
        self.partition, self.headers = partition, headers
        self.pairs = header_pairs(headers)
        self.fill(queues, topic, parts)

    cdef int fill(self, Appending queues, str topic, list parts) except -1:
        if self.headers is None:
            self.headers = ()
        self.queues, self.topic, self.parts = queues, topic, parts
        self.outcome = TableOutcome(queues.loop)
        self.runs = []
        self.part = <RowCells?> parts[0] if parts else None
        return 0

    def add(self):
        return self.added(self.queues.topic(self.topic))

    cdef bint added(self, topic) except -1:
        """See `add`. The topic is None if its queues are not known."""
        cdef Appending queues = self.queues
        if self.partition is None and not queues.hashes:
            topic = None
        while self.part is not None:
            if topic is not None:
                self.row = queues.add_rows(topic, self.row, self)
            if self.row < self.part.array.array.length:
                return False
            self.next_part()
        return True

    cdef int next_part(self) except -1:
        self.before += self.row
        self.row = 0
        self.at += 1
        self.part = self.parts[self.at] if self.at < len(self.parts) else None
        return 0

    def pair(self):
        return self.part.pair(self.row)

    def took(self, Delivery made not None):
        self.extend(made._outcome, made._index)
        self.row += 1
        if self.row >= self.part.array.array.length:
            self.next_part()

    def located(self, error):
        path = f".{error.path}" if error.path else ""
        return EncodeError(error.reason, path=f"records[{self.before + self.row}]{path}")

    cdef int extend(self, Callbacks batch, int64_t index) except -1:
        """The next row is a record of a batch."""
        cdef RowRun run = <RowRun> batch.newest
        # Another table, or another thread, may add records of its own in between.
        if run is None or run.table is not self.outcome or run.end != index:
            run = RowRun.__new__(RowRun)
            run.batch, run.table, run._index, run.end = batch, self.outcome, index, index
            batch.newest = run
            self.runs.append(run)
        run.end += 1
        return 0

    def finish(self):
        return self.finished()

    cdef TableDelivery finished(self):
        """The table learns what becomes of its rows in the order of the runs, not of its own."""
        cdef RowRun run
        cdef TableDelivery made
        cdef Callbacks table = self.outcome
        for run in self.runs:
            run.row = table.queued
            table.queued += run.end - run._index
        table.runs = self.runs
        table.whole = True  # nobody waits yet
        made = TableDelivery.__new__(TableDelivery)
        made._outcome = table
        return made


NAMES = ("topic", "value", "key", "headers", "partition", "timestamp")
BY_NAME = f"send(topic, value) takes topic, value by position, and the others by name: {'=, '.join(NAMES[2:])}="


cdef class Sending:
    def send(self, topic, value=None, *more, key=None, headers=(), partition=None, timestamp=None,
             timestamp_ms=None, callback=None, on_delivery=None):
        """Queue a record."""
        if more:
            raise TypeError(BY_NAME)
        if timestamp_ms is not None or callback is not None or on_delivery is not None:
            # Options of other clients. A dict of all that are unknown would take time.
            given = {"timestamp_ms": timestamp_ms, "callback": callback, "on_delivery": on_delivery}
            raise unknown_options([name for name, option in given.items() if option is not None], NAMES)
        cdef Appending queues = self._queues
        cdef Delivery made = None
        if queues is not None:  # the constructor has run
            made = queues.append_to_open(topic, key, value, headers, partition, timestamp)
        if made is None:
            return self._send(topic, value, key, headers, partition, timestamp)
        return made

    def send_columns(self, data, *, topic=None):
        """Queue the rows of an Arrow table."""
        cdef Appending queues = self._queues
        cdef FewRows rows = None if queues is None else queues.few(topic, data)
        if rows is None:
            return self._send_columns(data, topic)
        begun = self._check_transaction()
        # No Python code runs before the rows are added, so that the transaction, if it is one, is the same.
        return rows.finished() if rows.added(queues.ready.get(topic)) else self._add_rows(rows, begun)
