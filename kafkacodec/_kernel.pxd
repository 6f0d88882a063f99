# The C library as Cython sees it: the only file that declares what csrc/ offers. One section per header.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "kc_error.h" nogil:
    enum:
        KC_OK
        KC_TRUNCATED
        KC_CORRUPT
        KC_CRC_MISMATCH
        KC_BAD_MAGIC
        KC_LIMIT
        KC_NO_MEMORY
        KC_BAD_CODEC
        KC_CANNOT_ENCODE

    ctypedef struct kc_error:
        int code
        const char *what
        uint64_t position
        int64_t got
        int64_t want


cdef extern from "kc_varint.h" nogil:
    int KC_VARINT64_MAX_BYTES
    int64_t kc_unzigzag64(uint64_t v)
    int kc_uvarint32_decode(const uint8_t *p, const uint8_t *end, uint32_t *value)
    int kc_uvarint64_decode(const uint8_t *p, const uint8_t *end, uint64_t *value)
    int kc_varint32_decode(const uint8_t *p, const uint8_t *end, int32_t *value)
    int kc_varint64_decode(const uint8_t *p, const uint8_t *end, int64_t *value)
    size_t kc_uvarint64_encode(uint8_t *p, uint64_t v)
    size_t kc_varint64_encode(uint8_t *p, int64_t v)


cdef extern from "kc_crc32c.h" nogil:
    uint32_t kc_crc32c(uint32_t crc, const uint8_t *data, size_t size)
    const char *kc_crc32c_kernel()


cdef extern from "kc_crc32.h" nogil:
    uint32_t kc_crc32(uint32_t crc, const uint8_t *data, size_t size)
    const char *kc_crc32_kernel()


cdef extern from "kc_bytes.h" nogil:
    void kc_store_u32(uint8_t *p, uint32_t v)


cdef extern from "kc_alloc.h" nogil:
    ctypedef struct kc_buffer:
        uint8_t *data
        size_t size
        size_t capacity

    int kc_buffer_reserve(kc_buffer *b, size_t extra, kc_error *error)
    void kc_buffer_free(kc_buffer *b)


cdef extern from "kc_xxh32.h" nogil:
    uint32_t kc_xxh32(const uint8_t *data, size_t size)


cdef extern from "kc_lz4_frame.h" nogil:
    ctypedef struct kc_lz4_frame:
        size_t block_max
        bint has_content_checksum
        bint has_content_size
        uint64_t content_size
        uint32_t content_checksum

    ctypedef struct kc_lz4_block:
        const uint8_t *data
        size_t size
        bint stored

    int kc_lz4_open(kc_lz4_frame *frame, const uint8_t *data, size_t size, bint any_checksum, kc_error *error)
    int kc_lz4_next(kc_lz4_frame *frame, kc_lz4_block *block, kc_error *error)
    size_t KC_LZ4_DESCRIPTOR_BYTES(bint has_content_size)
    uint8_t kc_lz4_old_checksum(const uint8_t *frame, bint has_content_size)


cdef extern from "kc_snappy_frame.h" nogil:
    size_t KC_XERIAL_HEADER_BYTES

    ctypedef struct kc_snappy_frame:
        bint framed

    ctypedef struct kc_snappy_block:
        const uint8_t *data
        size_t size
        size_t content_size

    int kc_snappy_open(kc_snappy_frame *frame, const uint8_t *data, size_t size, kc_error *error)
    int kc_snappy_next(kc_snappy_frame *frame, kc_snappy_block *block, kc_error *error)
    void kc_xerial_header(uint8_t *out)


cdef extern from "kc_zstd_frame.h" nogil:
    ctypedef struct kc_zstd_frame:
        const uint8_t *data
        size_t size
        uint64_t most_content
        bint says_size
        bint skippable

    int kc_zstd_next(const uint8_t *data, size_t size, size_t *position, kc_zstd_frame *frame, kc_error *error)
