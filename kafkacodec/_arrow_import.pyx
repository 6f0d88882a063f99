# Arrow data of any library, by the PyCapsule interface: no import of that library, no copy.
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.errno cimport ENOMEM
from libc.string cimport memset

from kafkacodec cimport _kernel as k

from kafkacodec.errors import EncodeError


cdef class ImportedSchema:
    def __dealloc__(self):
        if self.schema.release != NULL:
            self.schema.release(&self.schema)

    @property
    def format(self):
        return self.schema.format.decode()


cdef class ImportedArray:
    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)

    def __len__(self):
        return self.array.length


cdef ImportedSchema schema_from(object capsule):
    cdef ImportedSchema owner = ImportedSchema()
    cdef k.ArrowSchema *given = <k.ArrowSchema *> PyCapsule_GetPointer(capsule, "arrow_schema")
    owner.schema = given[0]
    given.release = NULL
    return owner


cdef class ArrowReader:
    def __init__(self, data):
        if hasattr(data, "__arrow_c_stream__"):
            self.open_stream(data.__arrow_c_stream__())
        elif hasattr(data, "__arrow_c_array__"):
            self.open_array(*data.__arrow_c_array__())
        else:
            raise TypeError(f"{type(data).__name__} has no Arrow interface (__arrow_c_stream__ or __arrow_c_array__)")

    def open_stream(self, capsule):
        self.capsule = capsule
        self.stream = <k.ArrowArrayStream *> PyCapsule_GetPointer(capsule, "arrow_array_stream")
        self.owner = ImportedSchema()
        memset(&self.owner.schema, 0, sizeof(self.owner.schema))
        if self.stream.release == NULL:
            raise EncodeError("the Arrow stream has been read already")
        cdef int code
        with nogil:
            code = self.stream.get_schema(self.stream, &self.owner.schema)
        if code:
            self.owner.schema.release = NULL
            self.fail(code)

    def open_array(self, schema, array):
        cdef k.ArrowArray *given = <k.ArrowArray *> PyCapsule_GetPointer(array, "arrow_array")
        self.owner = schema_from(schema)
        self.single = ImportedArray()
        self.single.owner = self.owner
        self.single.array = given[0]
        given.release = NULL

    def fail(self, int code):
        cdef const char *text = self.stream.get_last_error(self.stream)
        if code == ENOMEM:
            raise MemoryError("the Arrow stream ran out of memory")
        reason = text.decode(errors="replace") if text != NULL else f"error {code}"
        raise EncodeError(f"the Arrow stream failed: {reason}")

    cdef int advance(self, k.ArrowArray *out) except -1:
        cdef int code
        with nogil:
            code = self.stream.get_next(self.stream, out)
        if code:
            out.release = NULL
            self.fail(code)
        return 0

    def __iter__(self):
        return self

    def __next__(self):
        cdef ImportedArray result
        if self.stream == NULL:
            if self.single is None:
                raise StopIteration
            result, self.single = self.single, None
            return result
        result = ImportedArray()
        result.owner = self.owner
        self.advance(&result.array)
        if result.array.release == NULL:
            raise StopIteration
        return result
