"""The binding that takes records out of batches: their keys become Python objects, the rest stays bytes."""
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint64_t

from kafkacodec._core cimport encode as k
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec._core._errors cimport exception_from

from kafkacodec.errors import CorruptRecord


cdef object key_of(const k.kc_stored_record *record):
    return PyBytes_FromStringAndSize(<const char *> record.key, record.key_size)


def newest_offsets(records, int64_t base_offset, int count, int64_t start_offset, dict newest):
    """Notes the offset of each key of decompressed records in `newest`, from an offset on."""
    cdef HeldBuffer held = HeldBuffer(records)
    cdef const uint8_t *at = held.start
    cdef const uint8_t *end = held.start + held.size
    cdef k.kc_stored_record record
    cdef k.kc_error error
    for _ in range(count):
        if k.kc_stored_record_next(&at, end, &record, &error):
            raise exception_from(&error)
        if record.key_size >= 0 and base_offset + record.offset_delta >= start_offset:
            newest[key_of(&record)] = base_offset + record.offset_delta


def choose(records, int64_t base_offset, int count, dict newest, int64_t end_offset, bint keep_deletes):
    """Which records stay: (a byte for each, their number, whether there is a tombstone among them).

    A record before `end_offset` stays if it is the newest of its key and has a value, or with `keep_deletes` none.
    """
    cdef HeldBuffer held = HeldBuffer(records)
    cdef const uint8_t *at = held.start
    cdef const uint8_t *end = held.start + held.size
    cdef k.kc_stored_record record
    cdef k.kc_error error
    cdef PyObject *found
    cdef int64_t offset
    cdef int kept = 0, i
    cdef bint deletes = False, stays
    if <uint64_t> count > held.size:
        raise CorruptRecord("there are more records than bytes")
    chosen = bytearray(count)
    cdef char *marks = PyByteArray_AS_STRING(chosen)
    for i in range(count):
        if k.kc_stored_record_next(&at, end, &record, &error):
            raise exception_from(&error)
        offset = base_offset + record.offset_delta
        stays = offset >= end_offset
        if not stays and record.key_size >= 0 and (record.value_size >= 0 or keep_deletes):
            found = PyDict_GetItem(newest, key_of(&record))
            stays = found == NULL or offset >= <int64_t> <object> found
        marks[i] = stays
        kept += stays
        deletes = deletes or (stays and record.key_size >= 0 and record.value_size < 0)
    return chosen, kept, deletes


def keep(records, chosen, int64_t base_timestamp, horizon):
    """The records that stay: (their bytes, their base timestamp, their largest timestamp).

    Args:
        records: decompressed.
        chosen: a byte for each of them.
        base_timestamp: that their timestamps count from.
        horizon: what they count from afterwards; None: the first timestamp.
    """
    cdef HeldBuffer held = HeldBuffer(records)
    cdef HeldBuffer marks = HeldBuffer(chosen)
    cdef const uint8_t *at = held.start
    cdef const uint8_t *end = held.start + held.size
    cdef k.kc_stored_record record
    cdef k.kc_error error
    cdef bint begun = horizon is not None
    cdef int64_t base = horizon if begun else 0
    cdef int64_t timestamp, most = INT64_MIN
    cdef uint8_t *to
    cdef uint64_t i
    out = bytearray(held.size + k.KC_RECORD_MAY_GROW * marks.size)
    to = <uint8_t *> PyByteArray_AS_STRING(out)
    for i in range(marks.size):
        if k.kc_stored_record_next(&at, end, &record, &error):
            raise exception_from(&error)
        if marks.start[i]:
            timestamp = <int64_t> (<uint64_t> base_timestamp + <uint64_t> record.timestamp_delta)
            if not begun:
                begun, base = True, timestamp
            most = max(most, timestamp)
            to = k.kc_stored_record_write(&record, <int64_t> (<uint64_t> timestamp - <uint64_t> base), to)
    PyByteArray_Resize(out, <char *> to - PyByteArray_AS_STRING(out))
    return out, base, most


def with_records(batch, records, int count, int64_t base_timestamp, int64_t max_timestamp, bint has_horizon):
    """A batch as it was, with these (compressed) records in place of its own."""
    cdef HeldBuffer old = HeldBuffer(batch)
    cdef k.kc_compacted change
    if old.size < k.KC_BATCH_HEADER_SIZE:
        raise CorruptRecord("the batch has no whole header")
    out = bytearray(k.KC_BATCH_HEADER_SIZE)
    out += records
    change.base_timestamp, change.max_timestamp = base_timestamp, max_timestamp
    change.count, change.has_horizon = count, has_horizon
    k.kc_compacted_header(
        old.start, &change, len(out) - k.KC_BATCH_HEADER_SIZE, <uint8_t *> PyByteArray_AS_STRING(out))
    return out
