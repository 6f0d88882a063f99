# cython: embedsignature=False
# Murmur2 and the partitions of keys: blocks of rows, without the GIL.
from libc.stdint cimport int32_t, int64_t

from kafkacodec._core cimport encode as k
from kafkacodec.arrow._reader cimport ImportedArray
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec._core._errors cimport exception_from
from kafkacodec.arrow._value_columns cimport ByteColumn

from kafkacodec.errors import EncodeError


def murmur2(key):
    """murmur2(key: Any) -> int

    Kafka's murmur2 of a key (bytes-like, or text as UTF-8), as the signed 32-bit number that Java has.

    Source: `org.apache.kafka.common.utils.Utils.murmur2`.
    """
    if isinstance(key, str):
        key = key.encode()
    cdef HeldBuffer data = HeldBuffer(key)
    return <int32_t> k.kc_murmur2(data.start, data.size)


cdef object fault(const k.kc_error *error, int64_t first_row):
    """The exception for `error`; if `first_row` is negative it concerns the column, not a row."""
    if error.code != k.KC_CANNOT_ENCODE:
        return exception_from(error)
    if first_row < 0:
        return TypeError(f"keys: {error.what.decode()}")
    return EncodeError(error.what.decode(), path=f"keys[{first_row + <int64_t> error.position}]")


cdef int bytes_partitions(const k.kc_arrow_bytes *c, int32_t partitions, int32_t *out,
                          k.kc_error *error) noexcept nogil:
    cdef k.kc_spans spans
    cdef int64_t row = 0, n
    while row < c.length:
        n = min(c.length - row, <int64_t> k.KC_BLOCK_ROWS)
        if k.kc_arrow_bytes_load(c, row, n, &spans, error):
            return error.code
        k.kc_murmur2_partitions(&spans, n, partitions, out + row)
        row += n
    return k.KC_OK


cdef int int_partitions(const k.kc_arrow_ints *c, int32_t partitions, int32_t *out, k.kc_error *error) noexcept nogil:
    cdef int64_t[256] numbers
    cdef size_t width = 4 if c.layout == k.KC_LAYOUT_INT32 else 8
    cdef int64_t row = 0, n, i
    while row < c.length:
        n = min(c.length - row, <int64_t> 256)
        if k.kc_arrow_ints_load(c, row, n, True, 0, numbers, error):
            return error.code
        k.kc_murmur2_int_partitions(numbers, n, width, partitions, out + row)
        if c.validity != NULL:
            for i in range(n):
                if not (c.validity[(c.first + row + i) >> 3] >> ((c.first + row + i) & 7)) & 1:
                    out[row + i] = -1
        row += n
    return k.KC_OK


cdef int64_t nulls_in(int32_t[::1] out, int64_t length) noexcept:
    cdef int64_t i, nulls = 0
    for i in range(length):
        nulls += out[i] < 0
    return nulls


def arrow_partitions(ImportedArray array not None, int32_t partitions, int32_t[::1] out, int64_t first_row):
    """Writes the partition of each key to `out`, -1 for null; returns the number of null keys."""
    cdef k.kc_error error
    cdef k.kc_arrow_bytes texts
    cdef k.kc_arrow_ints numbers
    cdef int code
    cdef int64_t length = array.array.length
    cdef bint nullable
    array.require()
    if out.shape[0] < length:
        raise ValueError(f"out has {out.shape[0]} items, fewer than the {length} keys")
    if length == 0:
        return 0
    # The format of a dictionary-encoded column is that of its indexes.
    if array.owner.schema.dictionary == NULL and array.owner.schema.format in (b"i", b"l"):
        if k.kc_arrow_ints_import(&numbers, &array.owner.schema, &array.array, 0, length, &error):
            raise fault(&error, -1)
        nullable = numbers.validity != NULL
        with nogil:
            code = int_partitions(&numbers, partitions, &out[0], &error)
    else:
        if k.kc_arrow_bytes_import(&texts, &array.owner.schema, &array.array, 0, length, &error):
            raise fault(&error, -1)
        nullable = texts.validity != NULL or texts.layout in (k.KC_LAYOUT_ABSENT, k.KC_LAYOUT_DICTIONARY)
        with nogil:
            code = bytes_partitions(&texts, partitions, &out[0], &error)
    if code:
        raise fault(&error, first_row)
    return nulls_in(out, length) if nullable else 0


def list_partitions(list keys not None, int32_t partitions, int32_t[::1] out):
    """The same for a list of bytes, text and None."""
    cdef k.kc_error error
    cdef k.kc_arrow_bytes c
    cdef ByteColumn column = ByteColumn()
    for i, key in enumerate(keys):
        try:
            column.append(key)
        except EncodeError as e:
            raise EncodeError(e.reason, path=f"keys[{i}]") from None
    c.validity = NULL
    c.first = 0
    column.describe(&c)
    if out.shape[0] < c.length:
        raise ValueError(f"out has {out.shape[0]} items, fewer than the {c.length} keys")
    if c.length and bytes_partitions(&c, partitions, &out[0], &error):
        raise fault(&error, 0)
    return nulls_in(out, c.length)
