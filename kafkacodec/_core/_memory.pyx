"""Memory of the C library's allocator."""
from kafkacodec._core cimport base as k


def live():
    """live() -> int"""
    return k.kc_live_bytes()


def kept():
    """kept() -> int"""
    return k.kc_kept_bytes()


def trim():
    """trim() -> int"""
    cdef size_t size
    with nogil:
        size = k.kc_trim()
    return size
