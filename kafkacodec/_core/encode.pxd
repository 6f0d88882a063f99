# csrc/encode as Cython sees it, a section per header; with all of arrow.pxd.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kafkacodec._core.arrow cimport *
from kafkacodec._core.decode cimport kc_batch


cdef extern from "encode/kc_input.h" nogil:
    ctypedef struct kc_input_chunk:
        int64_t rows
        kc_arrow_bytes key
        kc_arrow_bytes value
        kc_arrow_ints offset
        kc_arrow_ints timestamp
        kc_arrow_pairs headers

    bint kc_is_record_column(const char *name)
    int kc_input_chunk_import(kc_input_chunk *chunk, const ArrowSchema *schema, const ArrowArray *array,
                               const char **column, kc_error *error)
    bint kc_key_values_import(kc_arrow_bytes *key, kc_arrow_bytes *value, const ArrowSchema *schema,
                              const ArrowArray *array)
    size_t kc_input_chunk_bytes(const kc_input_chunk *chunk)


cdef extern from "encode/kc_batch_write.h" nogil:
    ctypedef struct kc_batch_options:
        int8_t magic
        bint drop_unsupported
        int64_t producer_id
        int32_t base_sequence
        int32_t leader_epoch
        int16_t producer_epoch
        int16_t attributes
        int64_t base_offset
        int64_t batch_bytes
        bint has_time
        int64_t time
        bint has_range
        int64_t first_offset
        int64_t last_offset

    ctypedef struct kc_open_batch:
        int64_t base_offset
        int64_t last_offset
        int64_t max_timestamp
        int64_t size
        int32_t count

    size_t kc_batch_header_bytes(const kc_batch_options *options)
    void kc_batch_write_empty(const kc_batch_options *options, int64_t max_timestamp, uint8_t *out)


cdef extern from "encode/kc_encode.h" nogil:
    ctypedef struct kc_room:
        uint8_t *at
        const uint8_t *end

    ctypedef enum kc_encode_event:
        KC_ENCODE_FAULT
        KC_ENCODE_ROWS_END
        KC_ENCODE_BATCH
        KC_ENCODE_NO_ROOM

    ctypedef struct kc_encoder:
        kc_batch_options options
        kc_open_batch open
        bint started
        size_t wanted

    void kc_encoder_begin(kc_encoder *e, const kc_batch_options *options)
    void kc_encoder_restart(kc_encoder *e, int64_t row)
    kc_encode_event kc_encoder_fill(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room, kc_error *error)
    void kc_encoder_close(kc_encoder *e, const uint8_t *records, size_t size, uint8_t *out)
    kc_encode_event kc_encoder_run(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room, kc_error *error)
    int kc_encoder_end(kc_encoder *e, kc_error *error)
    void kc_encoder_close_in_place(kc_encoder *e, const kc_room *room)


cdef extern from "encode/kc_append.h" nogil:
    ctypedef struct kc_cell:
        const uint8_t *data
        int64_t size

    ctypedef struct kc_new_record:
        kc_cell key
        kc_cell value
        int64_t timestamp
        const kc_cell *headers
        int64_t num_headers

    ctypedef struct kc_appender:
        kc_open_batch open
        kc_buffer batch

    ctypedef struct kc_producer:
        int64_t id
        int32_t base_sequence
        int16_t epoch
        bint transactional

    int kc_appender_add(kc_appender *a, const kc_new_record *record, int64_t limit, int64_t most, int64_t *added,
                        kc_error *error)
    void kc_appender_close(const kc_appender *a, int codec, const uint8_t *records, size_t size, uint8_t *out)
    void kc_appender_free(kc_appender *a)
    int kc_batch_set_producer(uint8_t *batch, size_t size, const kc_producer *producer, kc_error *error)


cdef extern from "encode/kc_row_runs.h" nogil:
    ctypedef struct kc_row_runs:
        int64_t row

    void kc_row_runs_begin(kc_row_runs *r)
    int kc_row_runs_open(kc_row_runs *r, const ArrowSchema *schema, const ArrowArray *array, kc_error *error)
    int kc_row_runs_next(kc_row_runs *r, int64_t *end, kc_error *error)


cdef extern from "encode/kc_renumber.h" nogil:
    enum:
        KC_RENUMBERED_BYTES

    ctypedef struct kc_renumbering:
        int64_t by
        int32_t leader_epoch

    ctypedef struct kc_renumbered:
        uint64_t position
        uint8_t head[16]

    int kc_renumber(const uint8_t *data, uint64_t size, uint64_t *position, const kc_renumbering *how,
                    kc_renumbered *out, size_t max, size_t *count, int64_t *next_offset, kc_error *error)
    int kc_assign(uint8_t *data, uint64_t size, uint64_t *position, int64_t *next_offset, int32_t leader_epoch,
                  kc_batch *out, size_t max, size_t *count, kc_error *error)


cdef extern from "encode/kc_compact.h" nogil:
    enum:
        KC_BATCH_HEADER_SIZE
        KC_RECORD_MAY_GROW

    ctypedef struct kc_stored_record:
        const uint8_t *key
        int32_t key_size
        int32_t value_size
        int64_t timestamp_delta
        int32_t offset_delta

    ctypedef struct kc_compacted:
        int64_t base_timestamp
        int64_t max_timestamp
        int32_t count
        bint has_horizon

    int kc_stored_record_next(const uint8_t **at, const uint8_t *end, kc_stored_record *record, kc_error *error)
    uint8_t *kc_stored_record_write(const kc_stored_record *record, int64_t timestamp_delta, uint8_t *out)
    void kc_compacted_header(const uint8_t *batch, const kc_compacted *change, size_t size, uint8_t *out)


cdef extern from "encode/kc_murmur2.h" nogil:
    uint32_t kc_murmur2(const uint8_t *data, size_t size)
    int32_t kc_murmur2_partition(const uint8_t *key, size_t size, int32_t partitions)
    void kc_murmur2_partitions(const kc_spans *keys, int64_t n, int32_t partitions, int32_t *out)
    void kc_murmur2_int_partitions(const int64_t *keys, int64_t n, size_t width, int32_t partitions, int32_t *out)
