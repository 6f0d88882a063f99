# csrc/decode as Cython sees it, a section per header; with all of arrow.pxd.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t

from kafkacodec._core.arrow cimport *


cdef extern from "decode/kc_walk.h" nogil:
    ctypedef enum kc_walk:
        KC_WALK_BATCH
        KC_WALK_END
        KC_WALK_PARTIAL
        KC_WALK_FAULT

    ctypedef struct kc_span:
        uint64_t position
        uint64_t size
        int64_t base_offset
        int8_t magic

    kc_walk kc_walk_next(const uint8_t *data, uint64_t size, uint64_t position, kc_span *span, kc_error *error)
    uint64_t kc_walk_reach(const uint8_t *data, uint64_t size, uint64_t position, uint64_t target)


cdef extern from "decode/kc_batch.h" nogil:
    enum:
        KC_LOG_APPEND_TIME
        KC_DELETE_HORIZON
        KC_TRANSACTIONAL
        KC_CONTROL

    ctypedef struct kc_batch:
        uint64_t position
        uint64_t size
        int64_t base_offset
        int64_t last_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        int32_t partition_leader_epoch
        int32_t base_sequence
        int16_t attributes
        int16_t producer_epoch
        int8_t magic
        int32_t count
        const uint8_t *records
        size_t records_size

    int kc_batch_codec(const kc_batch *b)
    void kc_batch_read(const uint8_t *data, const kc_span *span, kc_batch *batch)


cdef extern from "decode/kc_record_table.h" nogil:
    ctypedef enum kc_record_column:
        KC_COL_TOPIC
        KC_COL_PARTITION
        KC_COL_OFFSET
        KC_COL_KEY
        KC_COL_VALUE
        KC_COL_HEADERS
        KC_COL_PARTITION_LEADER_EPOCH
        KC_COL_ROW
        KC_NUM_RECORD_COLUMNS

    const kc_field kc_record_fields[]
    const kc_field kc_record_view_fields[]


cdef extern from "decode/kc_aborted.h" nogil:
    ctypedef struct kc_aborted:
        pass


cdef extern from "decode/kc_marker.h" nogil:
    enum:
        KC_MARKER_COMPRESSED
        KC_MARKER_UNREADABLE


cdef extern from "decode/kc_transactions.h" nogil:
    ctypedef struct kc_ended:
        int64_t producer_id
        int64_t first_offset
        int64_t last_offset
        int64_t kind
        int64_t position
        int64_t size

    ctypedef struct kc_open:
        int64_t producer_id
        int64_t first_offset
        uint64_t taken

    ctypedef struct kc_transactions:
        kc_open *slots
        size_t capacity
        kc_buffer ended
        bint without_commits

    int kc_transactions_open(kc_transactions *t, int64_t producer_id, int64_t first_offset, kc_error *error)
    int kc_transactions_follow(
        kc_transactions *t, const uint8_t *data, uint64_t size, const int64_t *positions, size_t count, kc_error *error
    )
    void kc_transactions_free(kc_transactions *t)


cdef extern from "decode/kc_resync.h" nogil:
    ctypedef struct kc_resync:
        uint64_t credit
        uint64_t examined

    bint kc_resync_used(const kc_resync *r)
    kc_resync kc_resync_start()
    uint64_t kc_resync_after(const uint8_t *data, uint64_t size, uint64_t position, kc_resync *state)
    uint64_t kc_resync_next(const uint8_t *data, uint64_t size, uint64_t start, kc_resync *state)


cdef extern from "decode/kc_decoder.h" nogil:
    enum:
        KC_OUT_OF_ORDER

    ctypedef struct kc_decoder_options:
        bint verify_crc
        bint include_control
        bint only_control
        bint search_partial
        bint in_order
        bint sets_compared
        int64_t least_offset
        int64_t most_offset
        int64_t start_offset
        int64_t end_offset
        kc_aborted *aborted
        size_t num_aborted

    ctypedef enum kc_event:
        KC_EVENT_END
        KC_EVENT_FULL
        KC_EVENT_COMPRESSED
        KC_EVENT_FAULT

    ctypedef struct kc_decoder:
        kc_decoder_options options
        uint64_t size
        uint64_t position
        uint64_t stop
        kc_resync resync
        bint decompressed
        bint located
        kc_backing *held
        kc_backing *provided
        kc_batch batch

    int64_t kc_decoder_record(const kc_decoder *d)
    void kc_decoder_init(kc_decoder *d, const uint8_t *data, uint64_t size, const kc_decoder_options *options)
    kc_event kc_decoder_run(kc_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error)
    int kc_decoder_provide(kc_decoder *d, const uint8_t *records, size_t size, kc_error *error)
    uint64_t kc_decoder_skip(kc_decoder *d)
    void kc_decoder_estimate(const kc_decoder *d, int64_t *rows, uint64_t *bytes)


cdef extern from "decode/kc_scan.h" nogil:
    enum:
        KC_NUM_HEADER_COLUMNS

    const kc_field kc_header_fields[]
    kc_walk kc_scan(const uint8_t *data, uint64_t size, uint64_t *position, bint verify_crc, int64_t max_batches,
                    kc_table *t, kc_error *error)


cdef extern from "decode/kc_confluent.h" nogil:
    ctypedef struct kc_confluent_parts:
        int32_t *ids
        uint8_t *id_validity
        uint8_t *payload_validity
        kc_view *payloads

    int64_t kc_confluent_buffers(const kc_arrow_bytes *c)
    const void *kc_confluent_buffer(const kc_arrow_bytes *c, int64_t i, int64_t *size)
    int kc_confluent_split(const kc_arrow_bytes *c, const kc_confluent_parts *parts, int64_t at, int32_t first_buffer,
                           kc_error *error)
