# csrc/base as Cython sees it, a section per header.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "base/kc_error.h" nogil:
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
        KC_TOTAL_LIMIT

    ctypedef struct kc_error:
        int code
        const char *what
        uint64_t position
        int64_t got
        int64_t want


cdef extern from "base/kc_bytes.h" nogil:
    uint16_t kc_load_u16(const uint8_t *p)
    uint32_t kc_load_u32(const uint8_t *p)
    uint64_t kc_load_u64(const uint8_t *p)
    void kc_store_u16(uint8_t *p, uint16_t v)
    void kc_store_u32(uint8_t *p, uint32_t v)
    void kc_store_u64(uint8_t *p, uint64_t v)


cdef extern from "base/kc_varint.h" nogil:
    int KC_VARINT64_MAX_BYTES
    int64_t kc_unzigzag64(uint64_t v)
    int kc_uvarint32_decode(const uint8_t *p, const uint8_t *end, uint32_t *value)
    int kc_uvarint64_decode(const uint8_t *p, const uint8_t *end, uint64_t *value)
    int kc_varint32_decode(const uint8_t *p, const uint8_t *end, int32_t *value)
    int kc_varint64_decode(const uint8_t *p, const uint8_t *end, int64_t *value)
    size_t kc_uvarint64_encode(uint8_t *p, uint64_t v)
    size_t kc_varint64_encode(uint8_t *p, int64_t v)


cdef extern from "base/kc_alloc.h" nogil:
    ctypedef struct kc_buffer:
        uint8_t *data
        size_t size
        size_t capacity

    int kc_buffer_reserve(kc_buffer *b, size_t extra, kc_error *error)
    void kc_buffer_free(kc_buffer *b)
    void kc_advise_huge(void *data, size_t size)
    void *kc_alloc(size_t size)
    void *kc_alloc_zeroed(size_t size)
    void kc_free(void *block)
    size_t kc_live_bytes()
    size_t kc_kept_bytes()
    size_t kc_trim()


cdef extern from "base/kc_budget.h" nogil:
    ctypedef struct kc_budget:
        size_t limit
        const char *what

    kc_budget *kc_budget_new(size_t limit, const char *what)
    void kc_budget_release(kc_budget *b)


cdef extern from "base/kc_backing.h" nogil:
    ctypedef struct kc_backing:
        bint is_source
        bint is_copied
        const uint8_t *data
        size_t size
        uint8_t *owned
        size_t capacity

    kc_backing *kc_backing_new(size_t least, size_t most, kc_budget *budget, kc_error *error)
    kc_backing *kc_backing_of(const uint8_t *data, size_t size, kc_budget *budget, void (*let_go)(void *) noexcept nogil,
                              void *holder, kc_error *error)
    void kc_backing_retain(kc_backing *b)
    void kc_backing_release(kc_backing *b)


cdef extern from "base/kc_mapping.h" nogil:
    ctypedef struct kc_mapping:
        const uint8_t *data
        uint64_t size

    int kc_mapping_open(kc_mapping *m, int descriptor, uint64_t size)
    bint kc_mapping_is_torn(const kc_mapping *m, uint64_t *position)
    void kc_mapping_drop(kc_mapping *m, uint64_t position)
    void kc_mapping_close(kc_mapping *m)


cdef extern from "base/kc_find.h" nogil:
    ctypedef struct kc_needle:
        const uint8_t *bytes
        size_t size

    int kc_needle_init(kc_needle *n, const void *bytes, size_t size, kc_error *error)
    void kc_needle_free(kc_needle *n)


cdef extern from "base/kc_utf8.h" nogil:
    bint kc_utf8_valid(const uint8_t *s, size_t size)
