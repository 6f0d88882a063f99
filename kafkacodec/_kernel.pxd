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
