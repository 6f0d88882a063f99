# Decompression for other extensions, into memory that the decompressor owns, and LZ4's frames behind what they write.
from libc.stdint cimport uint8_t

from kafkacodec._core cimport frames as k
from kafkacodec._core._buffer cimport Block


cdef class Decompressor:
    # The result of `run`, valid until the next call.
    cdef const uint8_t *content
    cdef size_t size

    # For tables of views: the memory of the content, which they keep alive, from a budget (or NULL) of the caller.
    cdef bint for_views
    cdef k.kc_budget *budget
    cdef k.kc_backing *backing
    cdef bint exhausted  # the error is that the budget is exhausted
    cdef k.kc_backing *_block  # the scratch is the rest of it
    cdef size_t _expected

    cdef k.kc_buffer _scratch
    cdef bytes _held
    cdef object _zstd
    cdef bint _direct
    cdef void *_context  # of zstd, for `run_directly`

    cdef int run(self, int codec, const uint8_t *data, size_t size, int magic, size_t limit) except -1
    cdef int run_library(self, int codec, const uint8_t *data, size_t size, int magic, size_t limit) except -1
    cdef void forget(self) noexcept
    cdef bint run_directly(self, int codec, const uint8_t *data, size_t size, int magic, size_t limit) noexcept nogil
    cdef bint _lz4_directly(self, const uint8_t *data, size_t size, int magic, size_t limit) noexcept nogil
    cdef bint _zstd_directly(self, const uint8_t *data, size_t size, size_t limit) noexcept nogil

    cdef void _open_block(self) noexcept nogil
    cdef int _keep(self) except -1
    cdef void _keep_block(self) noexcept nogil
    cdef bint _move(self, size_t size, k.kc_error *error) noexcept nogil
    cdef bint _make_room(self, size_t size, k.kc_error *error) noexcept nogil
    cdef int _refuse(self, const k.kc_error *error) except -1
    cdef int _add(self, bytes part) except -1
    cdef int _append(self, const uint8_t *data, size_t size) except -1
    cdef int _reserve(self, size_t size) except -1
    cdef int _gzip(self, const uint8_t *data, size_t size, size_t limit) except -1
    cdef size_t _gzip_member(
        self, const uint8_t *data, size_t size, size_t start, size_t window, size_t limit) except? 0
    cdef int _snappy(self, const uint8_t *data, size_t size, size_t limit) except -1
    cdef int _lz4(self, const uint8_t *data, size_t size, int magic, size_t limit) except -1
    cdef int _lz4_block(self, const k.kc_lz4_block *block, size_t block_max, size_t limit, size_t position) except -1
    cdef int _zstd_frames(self, const uint8_t *data, size_t size, size_t limit) except -1


# The options of LZ4's frames (lz4frame.h, the same since 1.8.2).
ctypedef struct lz4_preferences:
    int block_size, block_mode, content_checksum, frame_type
    unsigned long long content_size
    unsigned dictionary_id
    int block_checksums, level
    unsigned auto_flush, favour_decompression
    unsigned reserved[3]


cdef class Lz4Frames:
    cdef lz4_preferences preferences

    cdef Block frame_after(self, size_t head, const uint8_t *data, size_t size)
