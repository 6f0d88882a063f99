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
        KC_TOTAL_LIMIT

    ctypedef struct kc_error:
        int code
        const char *what
        uint64_t position
        int64_t got
        int64_t want


cdef extern from "kc_bytes.h" nogil:
    uint16_t kc_load_u16(const uint8_t *p)
    uint32_t kc_load_u32(const uint8_t *p)
    uint64_t kc_load_u64(const uint8_t *p)
    void kc_store_u16(uint8_t *p, uint16_t v)
    void kc_store_u32(uint8_t *p, uint32_t v)
    void kc_store_u64(uint8_t *p, uint64_t v)


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


cdef extern from "kc_budget.h" nogil:
    ctypedef struct kc_budget:
        pass

    kc_budget *kc_budget_new(size_t limit, const char *what)
    void kc_budget_release(kc_budget *b)


cdef extern from "kc_alloc.h" nogil:
    ctypedef struct kc_buffer:
        uint8_t *data
        size_t size
        size_t capacity

    int kc_buffer_reserve(kc_buffer *b, size_t extra, kc_error *error)
    void kc_buffer_free(kc_buffer *b)
    void kc_advise_huge(void *data, size_t size)
    void *kc_alloc(size_t size)
    void kc_free(void *block)
    size_t kc_live_blocks()
    size_t kc_pooled_bytes()
    void kc_pool_trim()


cdef extern from "kc_arrow_abi.h" nogil:
    int ARROW_FLAG_NULLABLE

    cdef struct ArrowSchema:
        const char *format
        const char *name
        int64_t flags
        int64_t n_children
        ArrowSchema **children
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept nogil

    cdef struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        void (*release)(ArrowArray *) noexcept nogil
        void *private_data

    cdef struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept nogil
        int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept nogil
        const char *(*get_last_error)(ArrowArrayStream *) noexcept nogil
        void (*release)(ArrowArrayStream *) noexcept nogil
        void *private_data


cdef extern from "kc_lz4_frame.h" nogil:
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


cdef extern from "kc_table.h" nogil:
    ctypedef enum kc_type:
        KC_BOOL
        KC_INT8
        KC_INT16
        KC_INT32
        KC_INT64
        KC_UINT32
        KC_TIMESTAMP_MS
        KC_BINARY
        KC_STRING
        KC_LIST
        KC_STRUCT

    ctypedef struct kc_field:
        const char *name
        kc_type type
        int num_children
        const kc_field *children

    ctypedef struct kc_column:
        const kc_field *field
        bint wanted
        int64_t length
        int64_t null_count
        kc_buffer validity
        kc_buffer values
        kc_buffer data
        kc_column *children

    ctypedef struct kc_table:
        int references      # atomic
        int num_columns
        int64_t length
        kc_column *columns

    kc_table *kc_table_new_within(const kc_field *fields, int num_fields, uint64_t wanted, kc_budget *budget, kc_error *error)
    void kc_table_retain(kc_table *t)
    void kc_table_release(kc_table *t)
    size_t kc_table_bytes(const kc_table *t)
    void kc_column_expect(kc_column *c, int64_t rows, size_t bytes)
    int kc_column_append_repeated(kc_column *c, int64_t value, int64_t rows, kc_error *error)
    int kc_column_append_repeated_bytes(kc_column *c, const void *data, size_t size, int64_t rows, kc_error *error)
    bint kc_table_fits(const kc_table *t, const kc_table *source, size_t spare)
    int kc_table_move(kc_table *t, kc_table *source, kc_error *error)
    size_t kc_type_width(kc_type type)


cdef extern from "kc_arrow.h" nogil:
    int kc_arrow_schema(const kc_table *t, ArrowSchema *out, kc_error *error)
    int kc_arrow_array(kc_table *t, ArrowArray *out, kc_error *error)
    int kc_arrow_stream(kc_table *t, ArrowArrayStream *out, kc_error *error)


cdef extern from "kc_log.h" nogil:
    ctypedef enum kc_walk:
        KC_WALK_BATCH
        KC_WALK_END
        KC_WALK_PARTIAL
        KC_WALK_FAULT


cdef extern from "kc_batch.h" nogil:
    ctypedef struct kc_batch:
        uint64_t position
        uint64_t size
        int64_t base_offset
        int64_t last_offset
        int16_t attributes
        int8_t magic
        int32_t count
        const uint8_t *records
        size_t records_size

    int kc_batch_codec(const kc_batch *b)


cdef extern from "kc_rows.h" nogil:
    ctypedef enum kc_record_column:
        KC_COL_TOPIC
        KC_COL_PARTITION
        KC_COL_OFFSET
        KC_COL_KEY
        KC_COL_VALUE
        KC_COL_HEADERS
        KC_COL_ROW
        KC_NUM_RECORD_COLUMNS

    const kc_field kc_record_fields[]


cdef extern from "kc_aborted.h" nogil:
    ctypedef struct kc_aborted:
        pass


cdef extern from "kc_resync.h" nogil:
    ctypedef struct kc_resync:
        uint64_t credit
        uint64_t examined

    bint kc_resync_used(const kc_resync *r)
    kc_resync kc_resync_start()
    uint64_t kc_resync_behind(const uint8_t *data, uint64_t size, uint64_t position, kc_resync *state)
    uint64_t kc_resync_next(const uint8_t *data, uint64_t size, uint64_t start, kc_resync *state)


cdef extern from "kc_decoder.h" nogil:
    ctypedef struct kc_decoder_options:
        bint verify_crc
        bint include_control
        bint search_partial
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
        kc_batch batch

    int64_t kc_decoder_record(const kc_decoder *d)
    void kc_decoder_init(kc_decoder *d, const uint8_t *data, uint64_t size, const kc_decoder_options *options)
    kc_event kc_decoder_run(kc_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error)
    int kc_decoder_provide(kc_decoder *d, const uint8_t *records, size_t size, kc_error *error)
    uint64_t kc_decoder_skip(kc_decoder *d)
    void kc_decoder_estimate(const kc_decoder *d, int64_t *rows, uint64_t *bytes)


cdef extern from "kc_msgset07.h" nogil:
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

    void kc_msgset07_init(kc_msgset07_decoder *d, const uint8_t *data, uint64_t size, const kc_msgset07_options *options)
    kc_event kc_msgset07_run(kc_msgset07_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error)
    int kc_msgset07_provide(kc_msgset07_decoder *d, const uint8_t *data, size_t size, kc_error *error)
    uint64_t kc_msgset07_skip(kc_msgset07_decoder *d)
    size_t KC_MSGSET07_HEADER(int magic)
    void kc_msgset07_write_header(uint8_t *out, int magic, int codec, const uint8_t *payload, uint32_t size)


cdef extern from "kc_scan.h" nogil:
    enum:
        KC_NUM_HEADER_COLUMNS

    const kc_field kc_header_fields[]
    kc_walk kc_scan(const uint8_t *data, uint64_t size, uint64_t *position, bint verify_crc, int64_t max_batches,
                    kc_table *t, kc_error *error)


cdef extern from "kc_arrow_array.h" nogil:
    ctypedef enum kc_layout:
        KC_LAYOUT_ABSENT
        KC_LAYOUT_OFFSETS32
        KC_LAYOUT_OFFSETS64
        KC_LAYOUT_VIEWS
        KC_LAYOUT_FIXED
        KC_LAYOUT_DICTIONARY
        KC_LAYOUT_INT32
        KC_LAYOUT_INT64


cdef extern from "kc_bytes_column.h" nogil:
    int KC_BLOCK_ROWS

    ctypedef struct kc_spans:
        const uint8_t **data
        int32_t *size

    ctypedef struct kc_bytes_column:
        kc_layout layout
        const uint8_t *validity
        int64_t first
        int64_t length
        int64_t end
        const void *index
        const uint8_t *data

    int kc_bytes_column_import(kc_bytes_column *c, const ArrowSchema *schema, const ArrowArray *array, int64_t offset,
                               int64_t length, kc_error *error)
    int kc_bytes_column_load(const kc_bytes_column *c, int64_t row, int64_t n, kc_spans *out, kc_error *error)


cdef extern from "kc_arrow_import.h" nogil:
    ctypedef struct kc_int_column:
        kc_layout layout
        const uint8_t *validity
        int64_t first
        int64_t length
        const void *values
        int64_t multiply
        int64_t divide

    ctypedef struct kc_pairs_column:
        kc_layout layout
        const uint8_t *validity
        int64_t first
        int64_t length
        const void *index
        int64_t items
        kc_bytes_column key
        kc_bytes_column value

    int kc_int_column_import(kc_int_column *c, const ArrowSchema *schema, const ArrowArray *array, int64_t offset,
                             int64_t length, kc_error *error)
    int kc_int_column_load(const kc_int_column *c, int64_t row, int64_t n, bint nulls, int64_t null_value, int64_t *out,
                           kc_error *error)


cdef extern from "kc_record_block.h" nogil:
    ctypedef struct kc_record_chunk:
        int64_t rows
        kc_bytes_column key
        kc_bytes_column value
        kc_int_column offset
        kc_int_column timestamp
        kc_pairs_column headers

    int kc_record_chunk_import(kc_record_chunk *chunk, const ArrowSchema *schema, const ArrowArray *array,
                               const char **column, kc_error *error)
    size_t kc_record_chunk_bytes(const kc_record_chunk *chunk)


cdef extern from "kc_batch_header.h" nogil:
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

    ctypedef struct kc_open_batch:
        int64_t base_offset
        int64_t last_offset
        int64_t max_timestamp
        int64_t size
        int32_t count

    size_t kc_batch_header_bytes(const kc_batch_options *options)


cdef extern from "kc_encode.h" nogil:
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
        size_t wanted

    void kc_encoder_begin(kc_encoder *e, const kc_batch_options *options)
    kc_encode_event kc_encoder_fill(kc_encoder *e, const kc_record_chunk *chunk, kc_room *room, kc_error *error)
    void kc_encoder_close(kc_encoder *e, const uint8_t *records, size_t size, uint8_t *out)
    kc_encode_event kc_encoder_run(kc_encoder *e, const kc_record_chunk *chunk, kc_room *room, kc_error *error)
    void kc_encoder_close_in_place(kc_encoder *e, const kc_room *room)


cdef extern from "kc_murmur2.h" nogil:
    uint32_t kc_murmur2(const uint8_t *data, size_t size)
    void kc_murmur2_partitions(const kc_spans *keys, int64_t n, int32_t partitions, int32_t *out)
    void kc_murmur2_int_partitions(const int64_t *keys, int64_t n, size_t width, int32_t partitions, int32_t *out)


cdef extern from "kc_confluent.h" nogil:
    ctypedef struct kc_view:
        int32_t size

    ctypedef struct kc_confluent_parts:
        int32_t *ids
        uint8_t *id_validity
        uint8_t *payload_validity
        kc_view *payloads

    int64_t kc_confluent_buffers(const kc_bytes_column *c)
    const void *kc_confluent_buffer(const kc_bytes_column *c, int64_t i, int64_t *size)
    int kc_confluent_split(const kc_bytes_column *c, const kc_confluent_parts *parts, int64_t at, int32_t first_buffer,
                           kc_error *error)


cdef extern from "kc_mapping.h" nogil:
    ctypedef struct kc_mapping:
        const uint8_t *data
        uint64_t size

    int kc_mapping_open(kc_mapping *m, int descriptor, uint64_t size)
    bint kc_mapping_is_torn(const kc_mapping *m, uint64_t *position)
    void kc_mapping_drop(kc_mapping *m, uint64_t position)
    void kc_mapping_close(kc_mapping *m)
