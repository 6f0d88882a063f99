"""Varints over Python buffers."""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint64_t

from kafkacodec cimport _kernel as k

from kafkacodec.errors import CorruptRecord, EncodeError, Truncated


cdef object refuse(int n, Py_ssize_t position):
    if n == 0:
        return Truncated("the bytes end inside a varint", position=position)
    return CorruptRecord("a varint overflows 64 bits", position=position)


def encode_varint(value):
    """encode_varint(value: int) -> bytes"""
    cdef uint8_t out[10]
    cdef int64_t v
    try:
        v = value
    except OverflowError:
        raise EncodeError(f"{value} does not fit 64 bits") from None
    return out[: k.kc_varint64_encode(out, v)]


def encode_uvarint(value):
    """encode_uvarint(value: int) -> bytes"""
    cdef uint8_t out[10]
    cdef uint64_t v
    try:
        v = value
    except OverflowError:
        raise EncodeError(f"{value} does not fit 64 bits without sign") from None
    return out[: k.kc_uvarint64_encode(out, v)]


cdef int decode(object data, Py_ssize_t position, bint signed, int64_t *value) except -2:
    cdef Py_buffer view
    cdef int n
    cdef const uint8_t *at
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if position < 0 or position > view.len:
            raise Truncated(f"position {position} lies outside {view.len} bytes", position=position)
        at = <const uint8_t *> view.buf + position
        if signed:
            n = k.kc_varint64_decode(at, <const uint8_t *> view.buf + view.len, value)
        else:
            n = k.kc_uvarint64_decode(at, <const uint8_t *> view.buf + view.len, <uint64_t *> value)
        if n <= 0:
            raise refuse(n, position)
        return n
    finally:
        PyBuffer_Release(&view)


def decode_varint(data, Py_ssize_t position=0):
    """decode_varint(data: Buffer, position: int = 0) -> tuple[int, int]"""
    cdef int64_t value = 0
    cdef int n = decode(data, position, True, &value)
    return value, position + n


def decode_uvarint(data, Py_ssize_t position=0):
    """decode_uvarint(data: Buffer, position: int = 0) -> tuple[int, int]"""
    cdef int64_t value = 0
    cdef int n = decode(data, position, False, &value)
    return <uint64_t> value, position + n
