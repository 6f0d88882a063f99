# Rows next to one another in one buffer, of which each ends where the next one starts.
from libc.stdint cimport int64_t


cdef inline bint in_order(const int64_t[::1] ends, int64_t size) noexcept:
    """Whether every row ends after the one before it and within `size` bytes."""
    cdef int64_t i, last = 0
    for i in range(ends.shape[0]):
        if ends[i] < last:
            return False
        last = ends[i]
    return last <= size
