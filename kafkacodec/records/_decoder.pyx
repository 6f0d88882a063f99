"""The binding of the decoder: holds buffers, releases the GIL, converts faults to exceptions."""
cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from kafkacodec._core cimport decode as k
from kafkacodec.arrow._reader cimport ImportedArray
from kafkacodec._core._buffer cimport HeldBuffer, backing_of
from kafkacodec.arrow._columns cimport Allowance, Budget, Table, new_table
from kafkacodec.records._chunk_decoder cimport ChunkDecoder
from kafkacodec.records._compression cimport Decompressor
from kafkacodec._core._errors cimport check, exception_from

from kafkacodec.errors import DecodeError


cdef extern from "decode/kc_partial.h" nogil:
    enum:
        KC_ENTRY_TO_MAGIC

    int kc_partial_check_few(const uint8_t *data, uint64_t position, uint64_t left, k.kc_error *error)


def record_columns():
    """The names of all record columns in order; the index is the bit in a mask of wanted columns."""
    cdef int i
    return [k.kc_record_fields[i].name.decode() for i in range(<int> k.KC_NUM_RECORD_COLUMNS)]


def header_columns():
    """The names of the columns of batch headers in order, likewise."""
    cdef int i
    return [k.kc_header_fields[i].name.decode() for i in range(<int> k.KC_NUM_HEADER_COLUMNS)]


cdef uint64_t _FIRST_BYTES = 1 << 20

cdef uint64_t _SMALL_BYTES = 1 << 14

cdef bytearray NONE_ABORTED = bytearray()


cdef void expect_more(k.kc_column *column, double times) noexcept:
    """Reserves memory for so many times what the column has."""
    cdef int i
    k.kc_column_expect(
        column, <int64_t> min(column.length * times, <double> 0x7fffffff),
        <size_t> min(column.data.size * times, <double> 0x7fffff00))
    for i in range(column.field.num_children):
        expect_more(&column.children[i], times)


cdef enum:
    MOST_AT_ONCE = 16


cdef struct Many:
    # Tables that are filled one after another, and the positions after them.
    k.kc_table *tables[MOST_AT_ONCE]
    uint64_t positions[MOST_AT_ONCE]
    int most
    int filled
    int64_t max_rows
    uint64_t max_bytes
    uint64_t enough  # bytes of memory that the tables may still take


@cython.no_gc_clear    # as its base
cdef class Decoder(ChunkDecoder):
    """Decodes one range of bytes into tables, chunk by chunk."""
    cdef k.kc_decoder decoder
    cdef bytes given        # transactions, as `open` got them
    cdef bytearray aborted  # the same as kc_aborted[], which the decoder writes to
    cdef bint views  # keys and values of the tables are views of the bytes, which the tables keep alive
    cdef bint owned  # views of copies of the bytes
    cdef k.kc_backing *source  # of the bytes, for views
    cdef Decompressor decompressor  # created for the first compressed batch; keeps the records of the current one
    cdef bint can_decompress        # it was created
    cdef readonly uint64_t decompressed_bytes  # of all compressed batches so far
    cdef bint lent  # the budget is of one `read_from`
    cdef size_t key_hint
    cdef size_t value_hint
    cdef int64_t header_rows
    cdef size_t header_hints[2]  # of keys and values of headers

    def __cinit__(
        self, data=b"", *, uint64_t wanted, bint verify_crc, bint include_control, int64_t start_offset, int64_t end_offset,
        uint64_t limit, bint search_partial=False, uint64_t start=0, end=None, aborted=b"", Budget budget=None,
        bint views=False, bint owned=False, order=None, bint only_control=False,
    ):
        cdef k.kc_decoder_options *options = &self.decoder.options
        cdef const k.kc_field *fields = k.kc_record_fields
        options.verify_crc = verify_crc
        options.include_control = include_control
        options.only_control = only_control
        options.search_partial = search_partial
        options.start_offset = start_offset
        options.end_offset = end_offset
        if order is not None:
            options.in_order = True
            options.least_offset, options.most_offset, options.sets_compared = order
        if views:
            fields = k.kc_record_view_fields
        self.begin(
            fields, k.KC_NUM_RECORD_COLUMNS, wanted, limit, budget, &self.decoder.position, &self.decoder.size)
        self.views = views
        self.owned = owned
        self.open(data, start, end, aborted)

    def __dealloc__(self):
        k.kc_backing_release(self.source)

    def open(self, data, uint64_t start=0, end=None, aborted=b"", start_offset=None, end_offset=None):
        """Switches to other bytes, with the same options, or with another `start_offset` or `end_offset`.

        `aborted` lists transactions whose batches are skipped: three int64 for each (producer id, first offset, offset
        of the marker), sorted.
        """
        self.begin_with(HeldBuffer(data, end), bytes(aborted), start, start_offset, end_offset)

    cdef int begin_with(self, HeldBuffer held, bytes aborted, uint64_t start, start_offset, end_offset) except -1:
        self.require_idle()
        if start_offset is not None:
            self.decoder.options.start_offset = start_offset
        if end_offset is not None:
            self.decoder.options.end_offset = end_offset
        self.given = aborted
        self.held = held
        self.keep_source(held, held.start, held.size)
        return self.begin_at(start)

    def restart(self, uint64_t start):
        """Starts again at another position of the same bytes."""
        self.require_open()
        self.begin_at(start)

    cdef int begin_at(self, uint64_t start) except -1:
        self.aborted = bytearray(self.given) if self.given else NONE_ABORTED
        self.point_at(self.held.start, self.held.size)
        self.decoder.position = min(start, self.held.size)
        self.fault = None
        self.done = False
        return 0

    def read_from(self, cls, data, Allowance allowance, int64_t max_rows, uint64_t max_bytes):
        """As `open` and a whole `read`, for many buffers one after another, each with a budget of its own.

        What is read to its end is released; `close` does that after anything else.
        """
        self.begin_with(HeldBuffer(data), b"", 0, None, None)
        self.spend(None if allowance is None else allowance.budget())
        self.lent = True
        chunk = self.read_whole(cls, max_rows, max_bytes)
        if self.done:
            self.release()
        return chunk

    def close(self):
        """Releases the bytes."""
        self.require_idle()
        self.release()
        if self.decompressor is not None:
            self.decompressor.forget()

    cdef void spend(self, Budget budget) noexcept:
        """Sets the budget of the tables that follow."""
        self.budget = budget
        if self.decompressor is not None:
            self.decompressor.budget = NULL if budget is None else budget.budget

    cdef int release(self) except -1:
        if self.lent:
            self.spend(None)
        self.held = None
        return self.keep_source(None, NULL, 0)

    cdef int keep_source(self, object holder, const uint8_t *data, size_t size) except -1:
        """Sets the object that later tables with views keep alive; None: nothing."""
        cdef k.kc_error error
        cdef k.kc_backing *before = self.source
        error.code = k.KC_OK
        self.source = NULL
        if self.views and holder is not None:
            self.source = backing_of(holder, data, size, NULL, &error)
            if self.source != NULL:
                self.source.is_source = True
                self.source.is_copied = self.owned
        k.kc_backing_release(before)
        return check(&error)

    cdef void point_at(self, const uint8_t *data, uint64_t size) noexcept:
        """Starts with other bytes, which `held` or the caller keeps alive."""
        cdef k.kc_decoder_options options = self.decoder.options
        options.num_aborted = len(self.aborted) // sizeof(k.kc_aborted)
        options.aborted = <k.kc_aborted *> PyByteArray_AS_STRING(self.aborted) if options.num_aborted else NULL
        k.kc_decoder_init(&self.decoder, data, size, &options)
        self.decoder.held = self.source

    def stop_at(self, uint64_t position):
        """Stops before batches that start at or after `position`; `done` then means that it was reached."""
        self.decoder.stop = min(position, self.decoder.size)
        self.done = False

    @property
    def searched(self):
        """Whether there was a search for intact batches, which reduces the work allowed for later searches."""
        return k.kc_resync_used(&self.decoder.resync)

    def reach(self, uint64_t position, uint64_t target):
        """The first batch at or after `target`, by the lengths of those from `position` on.

        Below `target`, it is where no further batch follows.
        """
        cdef uint64_t reached
        self.require_open()
        self.working = True
        with nogil:
            reached = k.kc_walk_reach(self.held.start, self.decoder.size, position, target)
        self.working = False
        return reached

    def continues(self, Decoder before not None, uint64_t start):
        """Whether `before`, going on, would have read what this decoder read from `start` on.

        It would if it ended there, in the state that this one began in. Then the bounds on its searches hold here too.
        """
        if not before.done or before.decoder.position != start or before.aborted != self.given:
            return False
        if self.searched:
            return not before.searched
        self.decoder.resync = before.decoder.resync
        return True

    @property
    def base_offset(self):
        """The base offset of the damaged batch; None if it is unknown."""
        return self.decoder.batch.base_offset if self.decoder.located else None

    cdef object explain(self, object exception):
        """The exception with batch and record in its path."""
        cdef k.kc_decoder *d = &self.decoder
        if not d.located or not isinstance(exception, DecodeError):
            return exception
        path = f"batch at offset {d.batch.base_offset}"
        if k.kc_decoder_record(d) >= 0:
            path += f": record {k.kc_decoder_record(d)}"
        exception.path = path
        if exception.position is None:
            exception.position = d.batch.position
        return exception

    cdef int provide(self, k.kc_error *error) except -1:
        """Decompresses the current batch; on failure returns False and sets self.fault."""
        cdef k.kc_batch *batch = &self.decoder.batch
        cdef Decompressor payload = self.decompressor
        if payload is None:
            payload = self.decompressor = Decompressor()
            payload.for_views = self.views
            payload.budget = NULL if self.budget is None else self.budget.budget
            self.can_decompress = True
        try:
            payload.run(k.kc_batch_codec(batch), batch.records, batch.records_size, batch.magic, self.limit)
        except DecodeError as exception:
            exception.position = batch.position
            self.fault = self.explain(exception)
            self.exhausted = payload.exhausted
            return False
        self.decoder.provided = payload.backing
        if k.kc_decoder_provide(&self.decoder, payload.content, payload.size, error):
            self.fault = self.explain(exception_from(error))
            return False
        self.decompressed_bytes += payload.size
        return True

    cdef k.kc_event advance(
        self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes, k.kc_error *error
    ) noexcept nogil:
        """As kc_decoder_run, for compressed batches too where that goes without the interpreter."""
        cdef k.kc_event event
        cdef k.kc_batch *batch = &self.decoder.batch
        while True:
            event = k.kc_decoder_run(&self.decoder, table, max_rows, max_bytes, error)
            if event != k.KC_EVENT_COMPRESSED or not self.can_decompress:
                return event
            if not self.decompressor.run_directly(
                k.kc_batch_codec(batch), batch.records, batch.records_size, batch.magic, self.limit
            ):
                return event
            self.decoder.provided = self.decompressor.backing
            if k.kc_decoder_provide(&self.decoder, self.decompressor.content, self.decompressor.size, error):
                return k.KC_EVENT_FAULT
            self.decompressed_bytes += self.decompressor.size

    cdef void expect_rows(self, k.kc_table *table, int64_t rows) noexcept nogil:
        """Reserve the memory that the previous chunk needed, which avoids copies as columns grow."""
        cdef k.kc_column *headers
        cdef size_t size
        cdef int i
        for i in range(<int> k.KC_COL_OFFSET, <int> k.KC_COL_HEADERS + 1):
            if table.columns[i].wanted:
                size = self.key_hint if i == k.KC_COL_KEY else self.value_hint if i == k.KC_COL_VALUE else 0
                k.kc_column_expect(&table.columns[i], rows, size)
        if self.header_rows and table.columns[<int> k.KC_COL_HEADERS].wanted:
            for i in range(2):
                headers = table.columns[<int> k.KC_COL_HEADERS].children[0].children
                k.kc_column_expect(&headers[i], self.header_rows, self.header_hints[i])

    cdef int run(self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes) except -1:
        ChunkDecoder.run(self, table, max_rows, max_bytes)
        return self.own(table)

    cdef int end_of_run(self, k.kc_event event, k.kc_error *error) except -1:
        ChunkDecoder.end_of_run(self, event, error)
        if self.done and self.decompressor is not None:
            self.decompressor.forget()
        return 0

    cdef int own(self, k.kc_table *table) except -1:
        """Copies the bytes to which the views of a table point, if the table must own them."""
        cdef k.kc_error error
        cdef int code
        if not self.owned or self.source == NULL:
            return 0
        with nogil:
            code = k.kc_views_own(&table.views, self.source, table.budget, &error)
        return check(&error) if code else 0

    def expect(self, Table chunk not None, uint64_t size):
        """Reserves memory for the open range or, if `size` is larger, for `size` bytes of similar data."""
        self.require_open()
        self.expect_like(chunk.growing(self.fields), size)

    cdef void expect_like(self, k.kc_table *table, uint64_t size) noexcept:
        cdef int64_t rows = 0
        cdef uint64_t held = 0
        cdef double times
        if self.decoder.size < _SMALL_BYTES:    # less work than giving the lock away
            k.kc_decoder_estimate(&self.decoder, &rows, &held)
        else:
            self.working = True
            with nogil:
                k.kc_decoder_estimate(&self.decoder, &rows, &held)
            self.working = False
        times = max(1.0, <double> size / max(self.decoder.size, <uint64_t> 1))
        self.key_hint = self.value_hint = <size_t> min(held * times + 64, <double> 0x7fffff00)
        self.expect_rows(table, <int64_t> min(rows * times, <double> 0x7fffffff))

    def read(self, cls, int64_t max_rows, uint64_t max_bytes, bint whole=False):
        """The next chunk. Sets `done` or `fault` at the end; `skip` continues after a fault."""
        if whole:
            return self.read_whole(cls, max_rows, max_bytes)
        cdef Table chunk = new_table(cls, self.fields, self.num_fields, self.wanted, self.budget)
        self.expect_rows(chunk.table, self.rows_ahead(max_rows))
        self.fill(chunk.table, max_rows, max_bytes)
        self.learn(chunk.table)
        return chunk

    cdef Table read_whole(self, cls, int64_t max_rows, uint64_t max_bytes):
        """A chunk with memory reserved for all of the data."""
        cdef Table chunk = new_table(cls, self.fields, self.num_fields, self.wanted, self.budget)
        self.require_open()
        self.expect_like(chunk.table, self.decoder.size)
        self.fill_first(chunk.table, max_rows, max_bytes)
        if self.fault is None and not self.done:
            self.fill(chunk.table, max_rows, max_bytes)
        self.learn(chunk.table)
        return chunk

    cdef int fill_first(self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes) except -1:
        """Reads the first MiB of records, and reserves memory for all if the rest is like them: headers of compressed
        batches do not contain the size of their records."""
        cdef uint64_t start = self.decoder.position
        cdef uint64_t end = min(self.decoder.stop, self.decoder.size)
        cdef double times
        cdef int i
        self.fill(table, max_rows, min(max_bytes, _FIRST_BYTES))
        if self.fault is not None or self.decoder.position <= start or self.decoder.position >= end:
            return 0
        times = <double> (end - self.decoder.position) / (self.decoder.position - start) * 1.05
        for i in range(table.num_columns):
            if table.columns[i].wanted:
                expect_more(&table.columns[i], times)
        return 0

    def read_many(self, cls, int most, int64_t max_rows, uint64_t max_bytes, uint64_t enough):
        """As so many calls of `read`, up to a fault, the end, or a chunk that brings their memory to `enough` bytes.

        The interpreter's lock is free from the first chunk to the last, unless a library decompresses.
        Returns the chunks, each with the position after it.
        """
        cdef Many many
        cdef Table chunk
        cdef int i
        memset(&many, 0, sizeof(many))
        many.most = min(most, MOST_AT_ONCE)
        many.max_rows, many.max_bytes, many.enough = max_rows, max_bytes, enough
        chunks = []
        self.require_open()
        self.working = True
        try:
            self.run_many(&many)
            if not many.filled:  # there is no memory for the first one
                raise self.take_fault()
            for i in range(many.filled):
                self.own(many.tables[i])
                self.append_place(many.tables[i])
                chunk = cls.__new__(cls)
                chunk.table, many.tables[i] = many.tables[i], NULL
                chunks.append((chunk, many.positions[i]))
        finally:
            self.working = False
            for i in range(many.most):
                if many.tables[i] != NULL:
                    k.kc_table_release(many.tables[i])
        return chunks

    cdef int run_many(self, Many *many) except -1:
        cdef k.kc_error error
        cdef k.kc_event event
        error.code = k.KC_OK
        error.what = NULL
        while True:
            with nogil:
                event = self.fill_many(many, &error)
            if event != k.KC_EVENT_COMPRESSED:
                break
            if not self.provide(&error):
                self.end_chunk(many)
                break
        self.end_of_run(event, &error)
        return 0

    cdef k.kc_event fill_many(self, Many *many, k.kc_error *error) noexcept nogil:
        """Fills tables until something else than a full one stops it, or there are enough."""
        cdef k.kc_event event = k.KC_EVENT_FULL
        cdef k.kc_table *table
        cdef k.kc_budget *budget = NULL if self.budget is None else self.budget.budget
        while event == k.KC_EVENT_FULL and many.filled < many.most and many.enough:
            table = many.tables[many.filled]
            if table == NULL:
                table = k.kc_table_new_within(self.fields, self.num_fields, self.wanted, budget, error)
                if table == NULL:
                    return k.KC_EVENT_FAULT
                many.tables[many.filled] = table
                self.expect_rows(table, self.rows_ahead(many.max_rows))
            event = self.advance(table, many.max_rows, many.max_bytes, error)
            if event == k.KC_EVENT_COMPRESSED:
                break
            self.end_chunk(many)
        return event

    cdef void end_chunk(self, Many *many) noexcept nogil:
        cdef k.kc_table *table = many.tables[many.filled]
        self.learn(table)
        many.enough -= min(many.enough, <uint64_t> k.kc_table_bytes(table))
        many.positions[many.filled] = self.decoder.position
        many.filled += 1

    cdef int64_t rows_ahead(self, int64_t max_rows) noexcept nogil:
        """No more rows than that can come."""
        return min(max_rows, <int64_t> ((self.decoder.size - self.decoder.position) // 8 + 1))

    cdef void learn(self, const k.kc_table *table) noexcept nogil:
        """Expect as much of the next chunk as of this one."""
        self.key_hint = table.columns[<int> k.KC_COL_KEY].data.size
        self.value_hint = table.columns[<int> k.KC_COL_VALUE].data.size
        self.key_hint += self.key_hint // 8 + 32768
        self.value_hint += self.value_hint // 8 + 32768
        self.note_headers(table)

    cdef void note_headers(self, const k.kc_table *table) noexcept nogil:
        """Remembers how much memory headers take."""
        cdef const k.kc_column *headers = &table.columns[<int> k.KC_COL_HEADERS]
        cdef size_t size
        cdef int i
        if not headers.wanted:
            return
        self.header_rows = headers.children[0].length + headers.children[0].length // 8
        for i in range(2):
            size = headers.children[0].children[i].data.size
            self.header_hints[i] = size + size // 8 + 4096

    def skip(self):
        """Skips the damaged batch, up to the next intact one; returns the number of bytes."""
        cdef uint64_t passed
        self.require_open()
        self.working = True
        with nogil:
            passed = k.kc_decoder_skip(&self.decoder)
        self.working = False
        return passed

    def read_blobs(
        self, Table table not None, ImportedArray blobs not None, int64_t first_row, int64_t max_rows, on_stop
    ):
        """Adds the records of each blob of an Arrow array, with the row of the blob in the column `row`.

        `on_stop(row)` is called at a fault, and if the table has `max_rows`. If it returns True, decoding continues in
        the same blob (after a `skip`), otherwise with the next one. Returns the number of bytes in complete batches.
        """
        cdef k.kc_arrow_bytes column
        cdef k.kc_error error
        error.code = k.KC_OK
        blobs.require()
        self.require_open()
        if k.kc_arrow_bytes_import(&column, &blobs.owner.schema, &blobs.array, 0, blobs.array.length, &error):
            raise TypeError(f"column of blobs: {error.what.decode()}")
        try:
            return self.read_column(table, blobs, &column, first_row, max_rows, on_stop)
        finally:    # the caller owns the blobs: no pointer into them may remain
            if not self.working:
                self.keep_source(None, NULL, 0)
                self.point_at(NULL, 0)

    cdef int64_t read_column(
        self, Table table, ImportedArray blobs, const k.kc_arrow_bytes *column, int64_t first_row, int64_t max_rows, on_stop
    ) except -1:
        cdef k.kc_spans spans
        cdef k.kc_error error
        cdef int64_t row, i, n
        cdef int64_t rows = column.length
        cdef int64_t consumed = 0
        cdef const uint8_t *all_data = NULL
        cdef size_t all_size = 0
        cdef bint together = k.kc_arrow_bytes_together(column, &all_data, &all_size)
        error.code = k.KC_OK
        if together:
            self.keep_source(blobs, all_data, all_size)
        for row in range(0, rows, <int64_t> k.KC_BLOCK_ROWS):
            n = min(rows - row, <int64_t> k.KC_BLOCK_ROWS)
            if k.kc_arrow_bytes_load(column, row, n, &spans, &error):
                raise ValueError(f"the Arrow array is damaged: {error.what.decode()} (row {error.position})")
            for i in range(n):
                if spans.size[i] > 0:
                    if not together:
                        self.keep_source(blobs, spans.data[i], <size_t> spans.size[i])
                    consumed += self.read_blob(
                        table, spans.data[i], spans.size[i], first_row + row + i, max_rows, on_stop
                    )
        return consumed

    cdef int64_t read_blob(
        self, Table into, const uint8_t *data, size_t size, int64_t row, int64_t max_rows, on_stop
    ) except -1:
        cdef k.kc_table *table = into.growing(self.fields)
        cdef k.kc_column *rows = &table.columns[<int> k.KC_COL_ROW]
        cdef int64_t before = table.length
        cdef k.kc_error error
        error.code = k.KC_OK
        self.require_open()
        self.point_at(data, size)
        while True:
            self.fill(into.growing(self.fields), max_rows, 0x7fffffffffffffff)
            if self.done or not on_stop(row):
                break
        if rows.wanted and k.kc_column_append_repeated(rows, row, table.length - before, &error):
            check(&error)
        return self.decoder.position


def first_blob(ImportedArray blobs not None):
    """A copy of the first blob that is not empty, or of its first MiB."""
    cdef k.kc_arrow_bytes column
    cdef k.kc_spans spans
    cdef k.kc_error error
    cdef int64_t row
    blobs.require()
    if k.kc_arrow_bytes_import(&column, &blobs.owner.schema, &blobs.array, 0, blobs.array.length, &error):
        return b""
    for row in range(blobs.array.length):
        if k.kc_arrow_bytes_load(&column, row, 1, &spans, &error):
            return b""
        if spans.size[0] > 0:
            return PyBytes_FromStringAndSize(<const char *> spans.data[0], min(spans.size[0], 1 << 20))
    return b""


def scan(
    cls, data, uint64_t wanted, bint verify_crc, uint64_t start=0, end=None, int64_t max_batches=INT64_MAX,
    Budget budget=None,
):
    """(table of headers, position after the last batch, size of the data up to `end`, exception or None, whether the
    budget is exhausted)"""
    cdef Table t = new_table(cls, k.kc_header_fields, k.KC_NUM_HEADER_COLUMNS, wanted, budget)
    cdef HeldBuffer held = HeldBuffer(data, end)
    cdef k.kc_error error
    cdef k.kc_walk ended
    cdef uint64_t position = start
    cdef bint whole = end is None
    error.code = k.KC_OK
    with nogil:
        ended = k.kc_scan(held.start, held.size, &position, verify_crc, max_batches, t.table, &error)
        # Without an `end`, nothing follows: bytes that no batch begins with are none that was cut off.
        if ended == k.KC_WALK_PARTIAL and whole and held.size - position < KC_ENTRY_TO_MAGIC:
            if kc_partial_check_few(held.start, position, held.size - position, &error):
                ended = k.KC_WALK_FAULT
    fault = exception_from(&error) if ended == k.KC_WALK_FAULT else None
    return t, position, held.size, fault, fault is not None and error.code == k.KC_TOTAL_LIMIT


def scan_stretches(cls, data, uint64_t wanted, stretches):
    """A table of the headers in all stretches (pairs of int64 positions), each up to its first fault."""
    cdef Table t = new_table(cls, k.kc_header_fields, k.KC_NUM_HEADER_COLUMNS, wanted, None)
    cdef HeldBuffer held = HeldBuffer(data)
    cdef HeldBuffer pairs = HeldBuffer(stretches)
    cdef const int64_t *bounds = <const int64_t *> pairs.start
    cdef size_t i
    cdef uint64_t position
    cdef k.kc_error error
    cdef k.kc_walk ended
    for i in range(pairs.size // (2 * sizeof(int64_t))):
        position = <uint64_t> bounds[2 * i]
        error.code = k.KC_OK
        with nogil:
            ended = k.kc_scan(
                held.start, min(<uint64_t> bounds[2 * i + 1], held.size), &position, False, INT64_MAX, t.table, &error
            )
        if ended == k.KC_WALK_FAULT:
            fault = exception_from(&error)
            if not isinstance(fault, DecodeError):
                raise fault
    return t
