# What the broker's check of produced batches needs of csrc/decode beyond decode.pxd.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kafkacodec._core.decode cimport kc_span


cdef extern from "decode/kc_walk.h" nogil:
    enum:
        KC_ENTRY_OVERHEAD
        KC_ENTRY_MAGIC_AT
        KC_MESSAGE_MIN_LENGTH


cdef extern from "decode/kc_batch.h" nogil:
    enum:
        KC_LOG_APPEND_TIME
        KC_BATCH_ATTRIBUTES_AT

    ctypedef struct produced_batch "kc_batch":
        uint64_t size
        int64_t base_offset
        int64_t last_offset
        int64_t max_timestamp
        int64_t producer_id
        int32_t base_sequence
        int32_t count
        uint32_t crc
        int16_t attributes
        int16_t producer_epoch
        int8_t magic

    int produced_codec "kc_batch_codec"(const produced_batch *b)
    void produced_read "kc_batch_read"(const uint8_t *data, const kc_span *span, produced_batch *batch)
    uint32_t produced_crc "kc_batch_compute_crc"(const uint8_t *data, const produced_batch *batch)


cdef extern from "decode/kc_record_table.h" nogil:
    enum:
        KC_COL_TIMESTAMP
