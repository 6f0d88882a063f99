# Columns to which Python values are appended one at a time, in the layout that the kernels read.
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.number cimport PyNumber_Index
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from kafkacodec._core cimport arrow as k
from kafkacodec._core._buffer cimport has_objects
from kafkacodec._core._errors cimport exception_from

from kafkacodec.errors import EncodeError


cdef class ByteColumn:
    """A column of bytes to which Python objects are appended."""
    def __dealloc__(self):
        k.kc_buffer_free(&self.offsets)
        k.kc_buffer_free(&self.data)
        k.kc_buffer_free(&self.validity)

    cdef int append(self, object value) except -1:
        cdef Py_buffer view
        if value is None:
            return self.put(NULL, -1)
        if isinstance(value, bytes):
            return self.put(<const uint8_t *> PyBytes_AS_STRING(value), len(value))
        if isinstance(value, str):
            try:
                value = value.encode()
            except UnicodeEncodeError as e:
                raise EncodeError(f"str cannot be encoded as UTF-8: {e.reason}") from None
            return self.put(<const uint8_t *> PyBytes_AS_STRING(value), len(value))
        try:
            if has_objects(value):
                raise TypeError
            PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
        except (TypeError, BufferError, ValueError):    # ValueError: a memoryview that was released
            raise EncodeError(f"{type(value).__name__} is not bytes, str or None") from None
        try:
            return self.put(<const uint8_t *> view.buf, view.len)
        finally:
            PyBuffer_Release(&view)

    cdef int put(self, const uint8_t *data, Py_ssize_t size) except -1:
        cdef k.kc_error error
        cdef int64_t end
        cdef bint null = size < 0
        size = 0 if null else size
        if (k.kc_buffer_reserve(&self.offsets, 16, &error) or k.kc_buffer_reserve(&self.data, size, &error)
                or k.kc_buffer_reserve(&self.validity, 1, &error)):
            raise exception_from(&error)
        if self.rows == 0:
            (<int64_t *> self.offsets.data)[0] = 0
            self.offsets.size = 8
        if size:
            memcpy(self.data.data + self.data.size, data, size)
            self.data.size += size
        (<int64_t *> self.offsets.data)[self.rows + 1] = self.data.size
        self.offsets.size += 8
        if self.rows % 8 == 0:
            self.validity.data[self.validity.size] = 0
            self.validity.size += 1
        if null:
            self.nulls += 1
        else:
            self.validity.data[self.rows >> 3] |= 1 << (self.rows & 7)
        self.rows += 1
        return 0

    cdef void describe(self, k.kc_arrow_bytes *c) noexcept:
        c.layout = k.KC_LAYOUT_OFFSETS64 if self.rows else k.KC_LAYOUT_ABSENT
        c.validity = self.validity.data if self.nulls else NULL
        c.length = self.rows
        c.end = self.data.size
        c.index = self.offsets.data
        c.data = self.data.data


cdef class IntColumn:
    """A column of 64-bit integers to which Python objects are appended; None becomes `null_value`."""
    def __dealloc__(self):
        k.kc_buffer_free(&self.values)

    cdef int append(self, object value, int64_t null_value) except -1:
        cdef int64_t number = null_value
        if value is not None:
            try:
                number = PyNumber_Index(value)
            except OverflowError:
                raise EncodeError(f"{value} does not fit a 64-bit integer") from None
            except TypeError:
                raise EncodeError(f"{type(value).__name__} is not an integer") from None
        return self.append_int(number)

    cdef int append_int(self, int64_t number) except -1:
        cdef k.kc_error error
        if k.kc_buffer_reserve(&self.values, 8, &error):
            raise exception_from(&error)
        memcpy(self.values.data + self.values.size, &number, 8)
        self.values.size += 8
        return 0

    cdef void describe(self, k.kc_arrow_ints *c) noexcept:
        c.layout = k.KC_LAYOUT_INT64 if self.values.size else k.KC_LAYOUT_ABSENT
        c.length = self.values.size // 8
        c.values = self.values.data
        c.multiply = c.divide = 1
        c.time = False
