"""The binding that moves record batches to other offsets."""
from libc.stdint cimport int32_t, int64_t, uint64_t

from kafkacodec._core cimport encode as k
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec._core._errors cimport exception_from


cdef enum:
    AT_ONCE = 512


def renumber(data, uint64_t position, int64_t by, int32_t leader_epoch):
    """(list of (position, first bytes) of changed batches, next position, offset after the last batch)"""
    cdef HeldBuffer held = HeldBuffer(data)
    cdef k.kc_renumbering how
    cdef k.kc_renumbered[AT_ONCE] batches
    cdef k.kc_error error
    cdef size_t count, i
    cdef int64_t next_offset = 0
    cdef int code
    how.by = by
    how.leader_epoch = leader_epoch
    with nogil:
        code = k.kc_renumber(held.start, held.size, &position, &how, batches, AT_ONCE, &count, &next_offset, &error)
    if code:
        raise exception_from(&error)
    heads = [(batches[i].position, (<const char *> batches[i].head)[:k.KC_RENUMBERED_BYTES]) for i in range(count)]
    return heads, position, next_offset
