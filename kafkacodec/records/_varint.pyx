# cython: embedsignature=False
"""Varints over Python buffers."""
from cpython.buffer cimport PyBuffer_Release
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint64_t

from kafkacodec._core cimport base as k
from kafkacodec._core._buffer cimport get_buffer

from kafkacodec.errors import CorruptRecord, EncodeError, Truncated


cdef extern from "Python.h":
    Py_ssize_t PyNumber_AsSsize_t(object, PyObject *) except? -1


def encode_varint(value):
    """encode_varint(value: int) -> bytes

    `value` as a zigzag varint of 1 to 10 bytes, the encoding of lengths and deltas in Kafka's records.

    Raises:
        EncodeError: `value` does not fit a 64-bit integer.
    """
    cdef uint8_t out[10]
    cdef int64_t v
    try:
        v = PyNumber_Index(value)
    except OverflowError:
        raise EncodeError(f"{value} does not fit a 64-bit integer") from None
    return PyBytes_FromStringAndSize(<char *> out, <Py_ssize_t> k.kc_varint64_encode(out, v))


def encode_uvarint(value):
    """encode_uvarint(value: int) -> bytes

    `value` as an unsigned varint of 1 to 10 bytes, the encoding of lengths in compact types and tagged fields.

    Raises:
        EncodeError: `value` is negative or does not fit 64 bits.
    """
    cdef uint8_t out[10]
    cdef uint64_t v
    try:
        v = PyNumber_Index(value)
    except OverflowError:
        raise EncodeError(f"{value} does not fit an unsigned 64-bit integer") from None
    return PyBytes_FromStringAndSize(<char *> out, <Py_ssize_t> k.kc_uvarint64_encode(out, v))


def decode_varint(data, position=0):
    """decode_varint(data: Buffer, position: int = 0) -> tuple[int, int]

    The zigzag varint at `position` of `data`.

    Returns:
        The value, a signed 64-bit integer, and the position after it. Encodings longer than necessary are accepted.

    Raises:
        Truncated: `data` ends inside the varint, or `position`, which may come from data too, is outside `data`.
        CorruptRecord: the value has more than 64 bits, or the varint more than ten bytes.
        TypeError: `data` is not a buffer, or `position` is not an integer.
    """
    cdef uint64_t raw = 0
    cdef Py_ssize_t end = decode(data, position, &raw)
    return k.kc_unzigzag64(raw), end


def decode_uvarint(data, position=0):
    """decode_uvarint(data: Buffer, position: int = 0) -> tuple[int, int]

    The unsigned varint at `position` of `data`; as `decode_varint`, also its errors, but the value is an unsigned
    64-bit integer.
    """
    cdef uint64_t value = 0
    cdef Py_ssize_t end = decode(data, position, &value)
    return value, end


cdef Py_ssize_t decode(object data, object where, uint64_t *value) except -1:
    """Decodes the varint at a position into `value`; returns the position after it."""
    cdef Py_buffer view
    cdef Py_ssize_t position = PyNumber_AsSsize_t(where, NULL)  # clipped: no buffer is that long
    if PyBytes_CheckExact(data):
        return decode_bytes(<const uint8_t *> PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), position, value)
    get_buffer(data, &view)
    try:
        return decode_bytes(<const uint8_t *> view.buf, view.len, position, value)
    finally:
        PyBuffer_Release(&view)


cdef Py_ssize_t decode_bytes(const uint8_t *data, Py_ssize_t size, Py_ssize_t position, uint64_t *value) except -1:
    cdef int n
    if position < 0 or position > size:
        raise Truncated(f"position {position} is outside the {size} bytes", position=position)
    n = k.kc_uvarint64_decode(data + position, data + size, value)
    if n == 0:
        raise Truncated("truncated varint", position=position)
    if n < 0:
        raise CorruptRecord("varint overflows 64 bits", position=position)
    return position + n
