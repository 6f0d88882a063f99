"""The binding of file mappings: a buffer that lives as long as anything that points into it."""
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t

from kafkacodec._core cimport base as k

import os


cdef class Mapping:
    """The first bytes of an open file as a read-only buffer; the file may be closed. Missing pages read as zeros.

    `torn` is None, or the position of the first page that was missing when it was read. In that case no data from the
    mapping is reliable.
    """
    cdef k.kc_mapping mapping

    def __cinit__(self, int descriptor, uint64_t size):
        cdef int error = k.kc_mapping_open(&self.mapping, descriptor, size)
        if error:
            raise OSError(error, os.strerror(error))

    def __dealloc__(self):
        k.kc_mapping_close(&self.mapping)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void *> self.mapping.data, <Py_ssize_t> self.mapping.size, True, flags)

    def __len__(self):
        return <Py_ssize_t> self.mapping.size

    def __getitem__(self, part):
        """The bytes of a slice without a step."""
        cdef Py_ssize_t start, stop, step
        start, stop, step = part.indices(<Py_ssize_t> self.mapping.size)
        if step != 1:
            raise ValueError("a slice of a mapping must have step 1")
        return PyBytes_FromStringAndSize(<const char *> self.mapping.data + start, max(stop - start, 0))

    @property
    def torn(self):
        cdef uint64_t position = 0
        return position if k.kc_mapping_is_torn(&self.mapping, &position) else None

    def drop_before(self, uint64_t position):
        """Release the memory of the pages completely before `position`; they can still be read again."""
        with nogil:
            k.kc_mapping_drop(&self.mapping, position)
