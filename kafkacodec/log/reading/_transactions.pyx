"""The binding that follows transactions through the batches of a log."""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t

from kafkacodec._core cimport decode as k
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec._core._errors cimport check

COMPRESSED = k.KC_MARKER_COMPRESSED
UNREADABLE = k.KC_MARKER_UNREADABLE


@cython.final
cdef class OpenTransactions:
    """The open transactions of a log up to the batches that were followed."""
    cdef k.kc_transactions state

    def __cinit__(self, first_offsets, bint committed):
        """Begin with the first offset of each open transaction, by producer id."""
        cdef k.kc_error error
        self.state.without_commits = not committed
        for producer_id, first_offset in first_offsets.items():
            if k.kc_transactions_open(&self.state, producer_id, first_offset, &error):
                check(&error)

    def __dealloc__(self):
        k.kc_transactions_free(&self.state)

    def first_offsets(self):
        """The first offset of each open transaction, by producer id."""
        cdef size_t i
        cdef k.kc_open *slots = self.state.slots
        return {slots[i].producer_id: slots[i].first_offset for i in range(self.state.capacity) if slots[i].taken}

    def follow(self, data, positions):
        """Take the batches at positions (int64) of the data, in the order of their offsets.

        Returns the transactions that have ended, if `committed` also those, as rows of int64: producer id, first offset,
        offset of the marker; and
        of each the marker's kind (or `COMPRESSED`, `UNREADABLE`), position and size in bytes.
        """
        cdef HeldBuffer held = HeldBuffer(data)
        cdef HeldBuffer rows = HeldBuffer(positions)
        cdef size_t count = rows.size // sizeof(int64_t)
        cdef k.kc_error error
        self.state.ended.size = 0
        # With the GIL, since the state belongs to all threads; the batches were scanned just before.
        if k.kc_transactions_follow(&self.state, held.start, held.size, <const int64_t *> rows.start, count, &error):
            check(&error)
        return divided(<const k.kc_ended *> self.state.ended.data, self.state.ended.size // sizeof(k.kc_ended))


cdef tuple divided(const k.kc_ended *ended, size_t count):
    cdef bytes transactions = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> (count * 3 * sizeof(int64_t)))
    cdef bytes markers = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> (count * 3 * sizeof(int64_t)))
    cdef int64_t *transaction = <int64_t *> PyBytes_AS_STRING(transactions)
    cdef int64_t *marker = <int64_t *> PyBytes_AS_STRING(markers)
    cdef size_t i
    for i in range(count):
        transaction[3 * i], marker[3 * i] = ended[i].producer_id, ended[i].kind
        transaction[3 * i + 1], marker[3 * i + 1] = ended[i].first_offset, ended[i].position
        transaction[3 * i + 2], marker[3 * i + 2] = ended[i].last_offset, ended[i].size
    return transactions, markers
