# csrc/frames as Cython sees it, a section per header; with all of base.pxd.
from libc.stdint cimport uint8_t, uint64_t

from kafkacodec._core.base cimport *


cdef extern from "frames/kc_lz4_frame.h" nogil:
    ctypedef struct kc_lz4_frame:
        size_t block_max

    ctypedef struct kc_lz4_block:
        const uint8_t *data
        size_t size
        bint stored

    int kc_lz4_open(kc_lz4_frame *frame, const uint8_t *data, size_t size, bint any_checksum, kc_error *error)
    int kc_lz4_next(kc_lz4_frame *frame, kc_lz4_block *block, kc_error *error)
    size_t KC_LZ4_DESCRIPTOR_BYTES(bint has_content_size)
    uint8_t kc_lz4_old_checksum(const uint8_t *frame, bint has_content_size)


cdef extern from "frames/kc_snappy_frame.h" nogil:
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


cdef extern from "frames/kc_zstd_frame.h" nogil:
    ctypedef struct kc_zstd_frame:
        const uint8_t *data
        size_t size
        uint64_t most_content
        bint says_size
        bint skippable

    int kc_zstd_next(const uint8_t *data, size_t size, size_t *position, kc_zstd_frame *frame, kc_error *error)
