"""Rows of tables as text: JSON lines, formats, tables for terminals."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp

from kafkacodec._core cimport text as k
from kafkacodec._core._errors cimport exception_from
from kafkacodec.arrow._columns cimport Table

# The kinds of pieces, by csrc/text/kc_text_rows.h.
cdef dict KINDS = {
    "constant": k.KC_TEXT_CONSTANT,
    "plain": k.KC_TEXT_PLAIN,
    "visible": k.KC_TEXT_VISIBLE,
    "value": k.KC_TEXT_VALUE,
    "number": k.KC_TEXT_NUMBER,
    "time": k.KC_TEXT_TIME,
    "size": k.KC_TEXT_SIZE,
    "size bytes": k.KC_TEXT_SIZE_BYTES,
    "json": k.KC_TEXT_JSON,
    "json headers": k.KC_TEXT_JSON_HEADERS,
    "plain headers": k.KC_TEXT_PLAIN_HEADERS,
    "visible headers": k.KC_TEXT_VISIBLE_HEADERS,
    "value headers": k.KC_TEXT_VALUE_HEADERS,
    "cell": k.KC_TEXT_CELL,
    "line end": k.KC_TEXT_LINE_END,
}
cdef dict CONTENTS = {  # of the columns of kinds that take any
    **dict.fromkeys([k.KC_TEXT_PLAIN, k.KC_TEXT_VISIBLE, k.KC_TEXT_VALUE, k.KC_TEXT_SIZE, k.KC_TEXT_SIZE_BYTES], "bytes"),
    **dict.fromkeys([k.KC_TEXT_NUMBER, k.KC_TEXT_TIME], "numbers"),
    k.KC_TEXT_JSON: "bytes or numbers",
    **dict.fromkeys([k.KC_TEXT_JSON_HEADERS, k.KC_TEXT_PLAIN_HEADERS, k.KC_TEXT_VISIBLE_HEADERS, k.KC_TEXT_VALUE_HEADERS],
                    "headers"),
}
cdef enum:
    GIVEN_ROWS = 1024  # at once
    ENOUGH = 1 << 16   # bytes of text at once

PRINTABLE, BLANK, WIDENS = k.KC_GLYPH_PRINTABLE, k.KC_GLYPH_BLANK, k.KC_GLYPH_WIDENS


cdef class Glyphs:
    """What is known of characters, asked for by pages of 256."""
    cdef k.kc_glyphs *glyphs
    cdef object page_of
    cdef dict pages

    def __cinit__(self, page_of):
        self.page_of, self.pages = page_of, {}
        self.glyphs = <k.kc_glyphs *> k.kc_alloc_zeroed(sizeof(k.kc_glyphs))
        if self.glyphs == NULL:
            raise MemoryError("no memory for pages of characters")

    def __dealloc__(self):
        k.kc_free(self.glyphs)

    def __reduce_ex__(self, protocol):
        raise TypeError("Glyphs cannot be copied or pickled")

    cdef int fill(self, int number) except -1:
        page = self.page_of(number)
        if type(page) is not bytes or len(page) != k.KC_GLYPH_PAGE:
            raise TypeError(f"a page is {k.KC_GLYPH_PAGE} bytes")
        self.pages[number] = page
        self.glyphs.pages[number] = <const uint8_t *> PyBytes_AS_STRING(page)
        return 0


cdef class TextWriter:
    """Makes text of rows by a list of pieces."""
    cdef k.kc_text text
    cdef k.kc_buffer pieces
    cdef k.kc_buffer given     # kc_text_given[GIVEN_ROWS] for each piece
    cdef tuple names           # of each piece's column
    cdef list places           # where that is in a table of `fields`; -1: it has none
    cdef size_t fields
    cdef Glyphs glyphs
    cdef list texts
    cdef bint filling          # an object of the caller is asked

    def __cinit__(self, pieces, Glyphs glyphs not None, bint ascii=False):
        cdef k.kc_text_piece *p
        cdef k.kc_error error
        cdef bytes text
        listed = list(pieces)
        self.glyphs, self.text.glyphs, self.text.ascii = glyphs, glyphs.glyphs, ascii
        if k.kc_buffer_reserve(&self.pieces, max(len(listed), 1) * sizeof(k.kc_text_piece), &error):
            raise exception_from(&error)
        self.pieces.size = len(listed) * sizeof(k.kc_text_piece)
        p = <k.kc_text_piece *> <void *> self.pieces.data
        self.texts = []
        for kind, _, text, most, width, right in listed:
            p.kind, p.column, p.given = KINDS[kind], NULL, NULL
            p.text, p.size = <const uint8_t *> PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
            p.cell.most, p.cell.width, p.cell.right = most, width, right
            self.texts.append(text)
            p += 1
        self.names = tuple([name for _, name, *_ in listed])

    def __dealloc__(self):
        k.kc_buffer_free(&self.text.out)
        k.kc_buffer_free(&self.pieces)
        k.kc_buffer_free(&self.given)

    def __reduce_ex__(self, protocol):
        raise TypeError("a TextWriter cannot be copied or pickled")

    def write(self, Table table, int64_t first, int64_t end, dict given=None, int64_t given_first=0):
        """The text of rows from `first` on, up to `end` or about 64 KiB, and the row after them."""
        cdef k.kc_text_piece *pieces = <k.kc_text_piece *> <void *> self.pieces.data
        cdef int count = <int> (self.pieces.size // sizeof(k.kc_text_piece))
        cdef int64_t next = first
        cdef int code = k.KC_TEXT_PAGE
        cdef k.kc_error error
        if self.filling:
            raise RuntimeError("the writer is already in use")
        if not 0 <= first <= end or (table is not None and end > len(table)):
            raise IndexError(f"rows {first} to {end} of {0 if table is None else len(table)}")
        self.find_columns(table)
        if given:
            end = min(end, first + GIVEN_ROWS)
            self.take_given(given, first, end, given_first)
        self.text.out.size = 0
        while code == k.KC_TEXT_PAGE:
            first = next
            with nogil:
                code = k.kc_text_rows(&self.text, pieces, count, first, end, ENOUGH, &next, &error)
            if code == k.KC_TEXT_PAGE:
                if next > first:
                    break  # what was given is counted from the first row on
                self.filling = True
                try:
                    self.glyphs.fill(self.text.missing)
                finally:
                    self.filling = False
            elif code:
                raise exception_from(&error)
        return PyBytes_FromStringAndSize(<const char *> self.text.out.data, self.text.out.size), next

    cdef int find_columns(self, Table table) except -1:
        """Set the columns of the pieces; NULL where the table has none."""
        cdef k.kc_text_piece *p = <k.kc_text_piece *> <void *> self.pieces.data
        cdef const k.kc_column *column
        cdef Py_ssize_t i
        cdef int place
        if self.places is None or fields_of(table) != self.fields:
            self.fields = fields_of(table)
            self.places = [place_of(table, name) for name in self.names]
        for i in range(len(self.names)):
            place = self.places[i]
            column = NULL if table is None or place < 0 else &table.table.columns[place]
            p[i].given = NULL
            p[i].column = column if column != NULL and column.wanted else NULL
            if p[i].column != NULL and not is_fit(p[i].kind, column):
                raise TypeError(f"column {self.names[i]!r} has no {CONTENTS[p[i].kind]}")
        return 0

    cdef int take_given(self, dict given, int64_t first, int64_t end, int64_t given_first) except -1:
        """Set what is given in place of columns, by their names: lists with bytes or None for the rows from a first one."""
        cdef k.kc_text_piece *p = <k.kc_text_piece *> <void *> self.pieces.data
        cdef k.kc_text_given *spans
        cdef k.kc_error error
        cdef Py_ssize_t i
        cdef int64_t row
        cdef list values
        if k.kc_buffer_reserve(&self.given, len(self.names) * GIVEN_ROWS * sizeof(k.kc_text_given), &error):
            raise exception_from(&error)
        for i in range(len(self.names)):
            values = given.get(self.names[i])
            if values is None:
                continue
            if not given_first <= first <= end <= given_first + len(values):
                raise IndexError(f"{len(values)} values of {self.names[i]!r} for rows {first - given_first} to {end - given_first}")
            spans = <k.kc_text_given *> <void *> self.given.data + i * GIVEN_ROWS
            for row in range(first, end):
                value = values[row - given_first]
                if value is None:
                    spans[row - first].data, spans[row - first].size = NULL, 0
                else:
                    spans[row - first].data = <const uint8_t *> PyBytes_AS_STRING(<bytes?> value)
                    spans[row - first].size = PyBytes_GET_SIZE(value)
            p[i].given = spans
        return 0


cdef size_t fields_of(Table table) noexcept:
    """What tells tables with other columns apart."""
    if table is None or table.table == NULL or table.table.num_columns == 0:
        return 0
    return <size_t> table.table.columns[0].field


cdef int place_of(Table table, object name) except -2:
    """Where a column is in a table; -1 without one."""
    cdef int i
    if name is None or table is None or table.table == NULL:
        return -1
    raw = name.encode()
    for i in range(table.table.num_columns):
        if table.table.columns[i].field.name == raw:
            return i
    return -1


cdef bint is_bytes(const k.kc_column *column) noexcept:
    return column.field.type in (k.KC_BINARY, k.KC_STRING, k.KC_BINARY_VIEW)


cdef bint is_fit(k.kc_text_kind kind, const k.kc_column *column) noexcept:
    """Whether a column has what a kind of piece writes."""
    cdef bint numbers = k.kc_type_width(column.field.type) > 0 or column.field.type == k.KC_BOOL
    if kind in (k.KC_TEXT_NUMBER, k.KC_TEXT_TIME):
        return numbers
    if kind == k.KC_TEXT_JSON:
        return numbers or is_bytes(column)
    if kind in (k.KC_TEXT_JSON_HEADERS, k.KC_TEXT_PLAIN_HEADERS, k.KC_TEXT_VISIBLE_HEADERS, k.KC_TEXT_VALUE_HEADERS):
        return column.field.type == k.KC_LIST and column.children[0].field.num_children == 2
    return is_bytes(column)


def place_runs(Table table not None):
    """The runs of rows of the same partition: (topic, partition, first row, row after the last)."""
    cdef const k.kc_column *topics = table.column("topic")
    cdef const k.kc_column *numbers = table.column("partition")
    cdef const int32_t *number = <const int32_t *> <const void *> numbers.values.data
    cdef const uint8_t *data
    cdef const uint8_t *other
    cdef int32_t size, other_size
    cdef int64_t row, first = 0
    if topics.field.type != k.KC_STRING or numbers.field.type != k.KC_INT32:
        raise TypeError("topics are text, and partitions are numbers")
    found = []
    for row in range(1, topics.length + 1):
        data = k.kc_column_bytes(topics, first, &size)
        if row < topics.length and number[row] == number[first]:
            other = k.kc_column_bytes(topics, row, &other_size)
            if size == other_size and (size <= 0 or memcmp(data, other, size) == 0):
                continue
        topic = None if size < 0 else PyBytes_FromStringAndSize(<const char *> data, size).decode()
        found.append((topic, number[first], first, row))
        first = row
    return found
