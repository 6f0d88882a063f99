# csrc/text as Cython sees it, a section per header; with all of arrow.pxd.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from kafkacodec._core.arrow cimport *


cdef extern from "text/kc_glyphs.h" nogil:
    int KC_GLYPH_PRINTABLE
    int KC_GLYPH_BLANK
    int KC_GLYPH_WIDENS
    int KC_GLYPH_PAGE
    int KC_GLYPH_PAGES

    ctypedef struct kc_glyphs:
        const uint8_t **pages


cdef extern from "text/kc_text.h" nogil:
    int KC_TEXT_PAGE

    ctypedef struct kc_text:
        kc_buffer out
        const kc_glyphs *glyphs
        bint ascii
        uint32_t missing


cdef extern from "text/kc_text_cell.h" nogil:
    ctypedef struct kc_text_cell:
        size_t most
        size_t width
        bint right


cdef extern from "text/kc_text_rows.h" nogil:
    ctypedef enum kc_text_kind:
        KC_TEXT_CONSTANT
        KC_TEXT_PLAIN
        KC_TEXT_VISIBLE
        KC_TEXT_VALUE
        KC_TEXT_NUMBER
        KC_TEXT_TIME
        KC_TEXT_SIZE
        KC_TEXT_SIZE_BYTES
        KC_TEXT_JSON
        KC_TEXT_JSON_HEADERS
        KC_TEXT_PLAIN_HEADERS
        KC_TEXT_VISIBLE_HEADERS
        KC_TEXT_VALUE_HEADERS
        KC_TEXT_CELL
        KC_TEXT_LINE_END

    ctypedef struct kc_text_given:
        const uint8_t *data
        size_t size

    ctypedef struct kc_text_piece:
        kc_text_kind kind
        const kc_column *column
        const kc_text_given *given
        const uint8_t *text
        size_t size
        kc_text_cell cell

    int kc_text_rows(kc_text *t, const kc_text_piece *pieces, int count, int64_t first, int64_t end, size_t enough,
                     int64_t *next, kc_error *error)


cdef extern from "text/kc_lines.h" nogil:
    int KC_LINE_FIELDS
    const kc_field *kc_line_fields

    ctypedef struct kc_bytes_of:
        const uint8_t *data
        size_t size

    ctypedef struct kc_lines:
        kc_bytes_of delimiter
        kc_bytes_of key_delimiter
        kc_bytes_of key
        bint empty_is_null

    int kc_lines_split(const kc_lines *how, const uint8_t *data, size_t size, bint last, int64_t most, kc_table *t,
                       size_t *used, kc_error *error)
