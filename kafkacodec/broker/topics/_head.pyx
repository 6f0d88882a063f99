"""The binding that reads and checks the header of one produced batch."""
from libc.stdint cimport uint64_t

from kafkacodec._core cimport decode as d
from kafkacodec._core cimport produced as p
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec._core._errors cimport exception_from


def read_head(data):
    """The header of the only batch in `data`, as a tuple; None if there is none, more than one, or a part of one.

    (magic, codec number, has append time, is transactional, is control, base offset, last offset, max timestamp,
    producer id, producer epoch, base sequence, count, size, whether the checksum is right)
    """
    cdef HeldBuffer held = HeldBuffer(data)
    cdef d.kc_span span
    cdef p.produced_batch batch
    cdef d.kc_error error
    cdef d.kc_walk found
    cdef bint crc_ok
    with nogil:
        found = d.kc_walk_next(held.start, held.size, 0, &span, &error)
        if found == d.KC_WALK_BATCH:
            p.produced_read(held.start, &span, &batch)
            crc_ok = p.produced_crc(held.start, &batch) == batch.crc
    if found == d.KC_WALK_FAULT:
        raise exception_from(&error)
    if found != d.KC_WALK_BATCH or span.size != held.size:
        return None
    return (
        batch.magic, p.produced_codec(&batch), (batch.attributes & p.KC_LOG_APPEND_TIME) != 0,
        (batch.attributes & d.KC_TRANSACTIONAL) != 0, (batch.attributes & d.KC_CONTROL) != 0,
        batch.base_offset, batch.last_offset, batch.max_timestamp, batch.producer_id, batch.producer_epoch,
        batch.base_sequence, batch.count, batch.size, crc_ok)
