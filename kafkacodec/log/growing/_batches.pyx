"""The binding that gives batches their offsets, in place, and finds batches in bytes of a log."""
cimport cython
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kafkacodec._core cimport decode as d
from kafkacodec._core cimport encode as k
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec._core._errors cimport exception_from


cdef enum:
    AT_ONCE = 64


@cython.final
cdef class BatchHead:
    """What a log keeps of the header of a record batch of magic 2, or of a message of magic 0 or 1."""
    cdef d.kc_batch batch

    @property
    def position(self):
        return self.batch.position

    @property
    def size(self):
        return self.batch.size

    @property
    def base_offset(self):
        return self.batch.base_offset

    @property
    def last_offset(self):
        return self.batch.last_offset

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
    def leader_epoch(self):
        return self.batch.partition_leader_epoch

    @property
    def magic(self):
        return self.batch.magic

    @property
    def count(self):
        return self.batch.count

    @property
    def codec(self):
        return d.kc_batch_codec(&self.batch)

    @property
    def base_timestamp(self):
        return self.batch.base_timestamp

    @property
    def timestamp_type(self):
        return 1 if self.batch.attributes & d.KC_LOG_APPEND_TIME else 0

    @property
    def has_horizon(self):
        """Whether the base timestamp is the delete horizon (KIP-534)."""
        return self.batch.magic >= 2 and (self.batch.attributes & d.KC_DELETE_HORIZON) != 0

    @property
    def is_transactional(self):
        return self.batch.magic >= 2 and (self.batch.attributes & d.KC_TRANSACTIONAL) != 0

    @property
    def is_control(self):
        return self.batch.magic >= 2 and (self.batch.attributes & d.KC_CONTROL) != 0


@cython.final
@cython.freelist(8)
@cython.auto_pickle(False)
cdef class AppendInfo:
    cdef readonly int64_t base_offset
    cdef readonly int64_t last_offset
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t position
    cdef readonly int64_t size

    def __init__(self, int64_t base_offset, int64_t last_offset, int64_t max_timestamp, int64_t position, int64_t size):
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp
        self.position = position
        self.size = size


cdef BatchHead head_of(const d.kc_batch *batch):
    cdef BatchHead head = BatchHead.__new__(BatchHead)
    head.batch = batch[0]
    head.batch.records = NULL
    return head


def assign_offsets(data, int64_t next_offset, int32_t leader_epoch):
    """Gives all batches of a writable buffer consecutive offsets and a leader epoch, in place; their heads."""
    cdef Py_buffer view
    cdef d.kc_batch[AT_ONCE] batches
    cdef k.kc_error error
    cdef size_t count, i
    cdef uint64_t position = 0
    cdef int code = 0
    cdef list heads = []
    PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
    try:
        while code == 0 and position < <uint64_t> view.len:
            code = k.kc_assign(
                <uint8_t *> view.buf, <uint64_t> view.len, &position, &next_offset, leader_epoch,
                batches, AT_ONCE, &count, &error)
            for i in range(count):
                heads.append(head_of(&batches[i]))
    finally:
        PyBuffer_Release(&view)
    if code:
        raise exception_from(&error)
    return heads


def find_batch(data, uint64_t start, uint64_t end, int64_t offset):
    """The head of the first batch in data[start, end) whose last offset is at least `offset`; None: no complete one."""
    cdef HeldBuffer held = HeldBuffer(data, end)
    cdef d.kc_span span
    cdef d.kc_batch batch
    cdef k.kc_error error
    while start < held.size and d.kc_walk_next(held.start, held.size, start, &span, &error) == d.KC_WALK_BATCH:
        d.kc_batch_read(held.start, &span, &batch)
        if batch.last_offset >= offset:
            return head_of(&batch)
        start += span.size
    return None


def batch_heads(data, uint64_t start, uint64_t end, int most):
    """The heads of at most so many complete batches in data[start, end), up to damage."""
    cdef HeldBuffer held = HeldBuffer(data, end)
    cdef d.kc_span span
    cdef d.kc_batch batch
    cdef k.kc_error error
    cdef list heads = []
    while len(heads) < most and start < held.size and (
            d.kc_walk_next(held.start, held.size, start, &span, &error) == d.KC_WALK_BATCH):
        d.kc_batch_read(held.start, &span, &batch)
        heads.append(head_of(&batch))
        start += span.size
    return heads
