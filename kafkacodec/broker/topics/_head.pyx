"""The binding that reads and checks one produced batch."""
cimport cython
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from kafkacodec._core cimport arrow as a
from kafkacodec._core cimport base as k
from kafkacodec._core cimport decode as d
from kafkacodec._core cimport produced as p
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec._core._errors cimport check, exception_from


@cython.final
cdef class Head:
    """The header of a batch that is the only one of a buffer."""
    cdef p.produced_batch batch
    cdef bint is_alone
    cdef readonly bint crc_ok
    cdef readonly bint records_ok
    cdef readonly int64_t largest_timestamp

    @property
    def magic(self):
        return self.batch.magic

    @property
    def codec(self):
        return p.produced_codec(&self.batch)

    @property
    def has_append_time(self):
        return (self.batch.attributes & p.KC_LOG_APPEND_TIME) != 0

    @property
    def is_transactional(self):
        return (self.batch.attributes & d.KC_TRANSACTIONAL) != 0

    @property
    def is_sound(self):
        """Whether producers write such headers."""
        cdef p.produced_batch *batch = &self.batch
        if batch.base_offset or batch.attributes & d.KC_CONTROL or batch.producer_id >= 0 > batch.base_sequence:
            return False
        return 0 < batch.count == batch.last_offset + 1

    @property
    def is_plain(self):
        """Whether the batch is all there is, as producers write it, not compressed, and nothing in it is wrong."""
        cdef p.produced_batch *batch = &self.batch
        if not (self.is_alone and self.crc_ok and self.records_ok) or batch.attributes & p.KC_LOG_APPEND_TIME:
            return False
        return batch.max_timestamp == self.largest_timestamp and self.is_sound

    @property
    def max_timestamp(self):
        return self.batch.max_timestamp

    @property
    def producer_id(self):
        return self.batch.producer_id

    @property
    def producer_epoch(self):
        return self.batch.producer_epoch

    @property
    def base_sequence(self):
        return self.batch.base_sequence

    @property
    def num_records(self):
        return self.batch.count

    @property
    def size(self):
        return self.batch.size

    def produced(self, data, int64_t max_timestamp, int64_t append_time):
        """The batch as it can be appended: its bytes, its largest timestamp, and the time that was written in it."""
        cdef Produced made = Produced.__new__(Produced)
        made.data = data
        made.max_timestamp = max_timestamp
        made.append_time = append_time
        made.producer_id = self.batch.producer_id
        made.producer_epoch = self.batch.producer_epoch
        made.base_sequence = self.batch.base_sequence
        made.count = self.batch.count
        made.is_transactional = (self.batch.attributes & d.KC_TRANSACTIONAL) != 0
        return made


@cython.final
@cython.freelist(32)
@cython.auto_pickle(False)
cdef class Produced:
    cdef readonly object data
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t producer_id
    cdef readonly int64_t append_time
    cdef readonly int32_t count
    cdef readonly int32_t base_sequence
    cdef readonly int16_t producer_epoch
    cdef readonly bint is_transactional


@cython.final
@cython.freelist(8)
@cython.auto_pickle(False)
cdef class Appended:
    cdef readonly int code
    cdef readonly int64_t base_offset
    cdef readonly int64_t append_time

    def __init__(self, int code, int64_t base_offset=-1, int64_t append_time=-1):
        self.code = code
        self.base_offset = base_offset
        self.append_time = append_time


cdef int are_records_valid(const uint8_t *data, uint64_t size, a.kc_table *table, d.kc_error *error) noexcept nogil:
    """Whether a batch that is not compressed has the records that its header says: 1 or 0; -1: memory is exhausted."""
    cdef d.kc_decoder decoder
    cdef d.kc_decoder_options options
    cdef d.kc_event found
    memset(&options, 0, sizeof(options))  # all others are off, those that are added too
    options.include_control = True
    options.start_offset, options.end_offset = INT64_MIN, INT64_MAX
    d.kc_decoder_init(&decoder, data, size, &options)
    found = d.kc_decoder_run(&decoder, table, INT32_MAX, INT64_MAX, error)
    if found == d.KC_EVENT_FAULT and error.code == k.KC_NO_MEMORY:
        return -1
    return found == d.KC_EVENT_END


cdef int64_t largest_in(const a.kc_column *times) noexcept nogil:
    """The largest timestamp of a column, in which a missing one is the smallest number; -1 for none."""
    cdef const int64_t *values = <const int64_t *>times.values.data
    cdef int64_t largest = -1
    cdef int64_t i
    for i in range(times.length):
        largest = max(largest, values[i])
    return largest


cdef enum Begins:
    BEGINS_NO_BATCH
    BEGINS_CORRUPT
    BEGINS_BATCH
    BEGINS_TRANSACTIONAL

NO_BATCH, CORRUPT, BATCH, TRANSACTIONAL = BEGINS_NO_BATCH, BEGINS_CORRUPT, BEGINS_BATCH, BEGINS_TRANSACTIONAL

cdef enum:
    NEWEST_MAGIC = 2


cdef Begins look(const uint8_t *data, uint64_t size) noexcept nogil:
    """What Kafka's readers find at the start of some bytes before they look at more than the size and the magic."""
    cdef int32_t length
    cdef int attributes
    if size < p.KC_ENTRY_OVERHEAD:
        return BEGINS_NO_BATCH
    length = <int32_t>k.kc_load_u32(data + p.KC_ENTRY_OVERHEAD - sizeof(int32_t))
    if length < p.KC_MESSAGE_MIN_LENGTH:
        return BEGINS_CORRUPT
    if size <= p.KC_ENTRY_MAGIC_AT:
        return BEGINS_NO_BATCH
    if data[p.KC_ENTRY_MAGIC_AT] > NEWEST_MAGIC:
        return BEGINS_CORRUPT
    if size - p.KC_ENTRY_OVERHEAD < <uint64_t>length:
        return BEGINS_NO_BATCH
    if data[p.KC_ENTRY_MAGIC_AT] < NEWEST_MAGIC:
        return BEGINS_BATCH
    attributes = k.kc_load_u16(data + p.KC_BATCH_ATTRIBUTES_AT)
    return BEGINS_TRANSACTIONAL if attributes & d.KC_TRANSACTIONAL else BEGINS_BATCH


def glance(data):
    """What comes first in `data`: NO_BATCH (nothing or a part), CORRUPT, BATCH, or TRANSACTIONAL, a batch of that."""
    cdef HeldBuffer held = HeldBuffer(data)
    return look(held.start, held.size)


def read_head(data):
    """The header of the first batch in `data`, and what follows it as `glance` has it.

    The header is None if there is no whole batch. `records_ok` and `largest_timestamp` are only known, and else false
    and -1, of batches of magic 2 that are not compressed.
    """
    cdef HeldBuffer held = HeldBuffer(data)
    cdef Head head = Head.__new__(Head)
    cdef d.kc_span span
    cdef d.kc_error error
    cdef d.kc_walk found
    cdef a.kc_table *table
    cdef uint64_t wanted = <uint64_t>1 << p.KC_COL_TIMESTAMP
    cdef int valid = 0
    cdef Begins after = BEGINS_NO_BATCH
    head.largest_timestamp = -1
    with nogil:
        found = d.kc_walk_next(held.start, held.size, 0, &span, &error)
        if found == d.KC_WALK_BATCH:
            p.produced_read(held.start, &span, &head.batch)
            head.crc_ok = p.produced_crc(held.start, &head.batch) == head.batch.crc
            after = look(held.start + span.size, held.size - span.size)
            head.is_alone = span.size == held.size
            if after == BEGINS_NO_BATCH and head.batch.magic == 2 and p.produced_codec(&head.batch) == 0:
                table = a.kc_table_new_within(d.kc_record_fields, d.KC_NUM_RECORD_COLUMNS, wanted, NULL, &error)
                valid = -1
                if table != NULL:
                    valid = are_records_valid(held.start, span.size, table, &error)
                    head.largest_timestamp = largest_in(&table.columns[p.KC_COL_TIMESTAMP])
                    a.kc_table_release(table)
    if valid < 0:
        check(&error)
    if found == d.KC_WALK_FAULT:
        raise exception_from(&error)
    head.records_ok = valid == 1
    return (head if found == d.KC_WALK_BATCH else None), after
