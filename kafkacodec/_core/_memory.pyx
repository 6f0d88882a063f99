"""Memory of the C library's allocator."""
from kafkacodec._core cimport base as k

# What modules keep beside the pool: for each of those that are imported, a function that returns the number of bytes
# that it keeps, and one that frees them and returns their number.
KEEPERS = []


def live():
    """live() -> int"""
    return k.kc_live_bytes()


def kept():
    """kept() -> int"""
    return k.kc_kept_bytes() + sum([kept() for kept, _ in KEEPERS])


def trim():
    """trim() -> int"""
    cdef size_t size
    with nogil:
        size = k.kc_trim()
    return size + sum([trim() for _, trim in KEEPERS])
