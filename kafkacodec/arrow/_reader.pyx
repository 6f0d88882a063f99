# Arrow data of any library through the PyCapsule interface, without importing that library and without a copy.
#
# A struct is moved out of its capsule, so the capsule contains a released struct afterwards: using a capsule a second
# time is detected.
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.errno cimport EIO, ENOMEM

from kafkacodec._core cimport arrow as k


cdef class ImportedSchema:
    def __dealloc__(self):
        if self.schema.release != NULL:
            self.schema.release(&self.schema)

    @property
    def format(self):
        return self.schema.format.decode() if self.schema.format != NULL else ""


cdef class ImportedArray:
    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)

    def __len__(self):
        return self.array.length

    cdef int require(self) except -1:
        if self.owner is None or self.owner.schema.release == NULL or self.array.release == NULL:
            raise TypeError("expected an array that ArrowReader returned")
        return 0


cdef class ImportedStream:
    def __dealloc__(self):
        if self.stream.release != NULL:
            self.stream.release(&self.stream)


cdef ImportedArray import_array(object schema, object array):
    """What two capsules contain, moved out of them."""
    cdef k.ArrowSchema *given_schema = <k.ArrowSchema *> PyCapsule_GetPointer(schema, "arrow_schema")
    cdef k.ArrowArray *given = <k.ArrowArray *> PyCapsule_GetPointer(array, "arrow_array")
    cdef ImportedSchema owner = ImportedSchema.__new__(ImportedSchema)
    cdef ImportedArray single = ImportedArray.__new__(ImportedArray)
    require_schema(given_schema)
    require_array(given)
    owner.schema, given_schema.release = given_schema[0], NULL
    single.array, given.release = given[0], NULL
    single.owner = owner
    return single


cdef class ArrowReader:
    def __init__(self, data):
        if self.owner is not None:
            raise RuntimeError("an ArrowReader reads only one object")
        if hasattr(data, "__arrow_c_stream__"):
            self.open_stream(data.__arrow_c_stream__())
        elif hasattr(data, "__arrow_c_array__"):
            schema, array = data.__arrow_c_array__()
            self.open_array(schema, array)
        else:
            raise TypeError(f"{type(data).__name__} has no Arrow interface (__arrow_c_stream__ or __arrow_c_array__)")

    cdef int open_stream(self, object capsule) except -1:
        cdef k.ArrowArrayStream *given = <k.ArrowArrayStream *> PyCapsule_GetPointer(capsule, "arrow_array_stream")
        cdef ImportedStream source = ImportedStream()
        cdef ImportedSchema owner = ImportedSchema()
        cdef int code
        if given.release == NULL:
            raise ValueError("the Arrow stream has already been read")
        source.stream, given.release = given[0], NULL
        self.source, self.owner = source, owner
        with nogil:
            code = source.stream.get_schema(&source.stream, &owner.schema)
        if code:
            owner.schema.release = NULL
            self.fail(code)
        require_schema(&owner.schema)
        return 0

    cdef int open_array(self, object schema, object array) except -1:
        self.single = import_array(schema, array)
        self.owner = self.single.owner
        return 0

    def __iter__(self):
        return self

    def __next__(self):
        cdef ImportedArray result
        if self.source is None:
            if self.single is None:
                raise StopIteration
            result, self.single = self.single, None
            return result
        if self.working:
            raise RuntimeError("the Arrow stream is already being read")
        result = ImportedArray()
        result.owner = self.owner
        self.working = True
        try:
            self.pull(result)
        finally:
            self.working = False
        if result.array.release == NULL:
            raise StopIteration
        require_array(&result.array)
        return result

    cdef int pull(self, ImportedArray into) except -1:
        cdef k.ArrowArrayStream *stream = &self.source.stream
        cdef k.ArrowArray *array = &into.array
        cdef int code
        with nogil:
            code = stream.get_next(stream, array)
        if code:
            array.release = NULL
            self.fail(code)
        return 0

    cdef int fail(self, int code) except -1:
        cdef const char *text = self.source.stream.get_last_error(&self.source.stream)
        if code == ENOMEM:
            raise MemoryError("the Arrow stream ran out of memory")
        reason = text.decode(errors="replace") if text != NULL else f"error {code}"
        raise (OSError if code == EIO else ValueError)(f"the Arrow stream failed: {reason}")


cdef int require_schema(const k.ArrowSchema *schema) except -1:
    if schema.release == NULL:
        raise ValueError("the Arrow schema has already been released")
    if schema.format == NULL:
        raise ValueError("the Arrow schema has no format")
    return 0


cdef int require_array(const k.ArrowArray *array) except -1:
    if array.release == NULL:
        raise ValueError("the Arrow array has already been released")
    if array.length < 0:
        raise ValueError(f"the Arrow array has length {array.length}")
    return 0
