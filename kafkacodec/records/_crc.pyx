# cython: embedsignature=False
"""Checksums over Python buffers."""
from cpython.buffer cimport PyBuffer_Release
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.number cimport PyNumber_Index
from libc.stdint cimport uint8_t, uint32_t

from kafkacodec._core cimport checksum as k
from kafkacodec._core._buffer cimport get_buffer

ctypedef uint32_t (*checksum)(uint32_t, const uint8_t *, size_t) noexcept nogil

# Below this size in bytes, releasing the GIL costs more than the checksum.
cdef enum:
    RELEASE_GIL_AT = 32768


cdef uint32_t over(checksum function, object data, uint32_t value) except? 0:
    cdef Py_buffer view
    get_buffer(data, &view)
    try:
        if view.len < RELEASE_GIL_AT:
            return function(value, <const uint8_t *> view.buf, <size_t> view.len)
        with nogil:
            value = function(value, <const uint8_t *> view.buf, <size_t> view.len)
        return value
    finally:
        PyBuffer_Release(&view)


cdef uint32_t checked(object value) except? 0:
    cdef int overflow
    cdef long long number = PyLong_AsLongLongAndOverflow(PyNumber_Index(value), &overflow)
    if overflow or not 0 <= number <= <long long> 0xffffffff:
        raise ValueError(f"value must be from 0 to 2^32 - 1, not {value}")
    return <uint32_t> number


def crc32c(data, value=0):
    """crc32c(data: Buffer, value: int = 0) -> int

    CRC-32C (Castagnoli) of `data`, the checksum of record batches of magic 2.

    Args:
        data: any contiguous buffer; the GIL is released for 32 KiB or more.
        value: the checksum of the bytes before `data`, to continue from.

    Raises:
        ValueError: `value` does not fit an unsigned 32-bit integer.

    Source: KIP-98; RFC 3720, appendix B.4, has examples.
    """
    return over(k.kc_crc32c, data, checked(value))


def crc32(data, value=0):
    """crc32(data: Buffer, value: int = 0) -> int"""
    return over(k.kc_crc32, data, checked(value))


def crc32c_kernel():
    """crc32c_kernel() -> str"""
    return k.kc_crc32c_kernel().decode()


def crc32_kernel():
    """crc32_kernel() -> str"""
    return k.kc_crc32_kernel().decode()
