# csrc/kafka07 as Cython sees it, a section per header; with all of decode.pxd.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from kafkacodec._core.decode cimport *


cdef extern from "kafka07/kc_msgset07.h" nogil:
    enum:
        KC_NUM_MSGSET07_COLUMNS

    const kc_field kc_msgset07_fields[]

    ctypedef struct kc_msgset07_options:
        bint verify_crc
        bint deep
        int64_t initial_offset

    ctypedef struct kc_msgset07_decoder:
        uint64_t size
        uint64_t position
        kc_msgset07_options options
        bint located
        int codec
        const uint8_t *payload
        size_t payload_size
        int depth

    ctypedef struct kc_msgset07_outline:
        uint64_t size
        uint64_t messages
        uint64_t compressed
        bint too_large

    void kc_msgset07_init(kc_msgset07_decoder *d, const uint8_t *data, uint64_t size, const kc_msgset07_options *options)
    kc_event kc_msgset07_run(kc_msgset07_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error)
    int kc_msgset07_provide(kc_msgset07_decoder *d, const uint8_t *data, size_t size, kc_error *error)
    uint64_t kc_msgset07_skip(kc_msgset07_decoder *d)
    int kc_msgset07_outermost(
        const uint8_t *data, uint64_t size, uint64_t max_payload, kc_msgset07_outline *found, kc_error *error)
    size_t KC_MSGSET07_HEADER(int magic)
    void kc_msgset07_write_header(uint8_t *out, int magic, int codec, const uint8_t *payload, uint32_t size)
