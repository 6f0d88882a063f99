# Arrow capsules; their destructors release structs that were not moved out.
from cpython.pycapsule cimport PyCapsule_Destructor, PyCapsule_GetPointer, PyCapsule_New

from kafkacodec._core cimport arrow as k


cdef inline void drop_schema(object capsule) noexcept:
    cdef k.ArrowSchema *schema = <k.ArrowSchema *> PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    k.kc_free(schema)


cdef inline void drop_array(object capsule) noexcept:
    cdef k.ArrowArray *array = <k.ArrowArray *> PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    k.kc_free(array)


cdef inline object new_capsule(void *content, const char *name, PyCapsule_Destructor drop):
    """A capsule of memory from kc_alloc_zeroed, which is freed if the capsule cannot be allocated."""
    if content == NULL:
        raise MemoryError
    try:
        return PyCapsule_New(content, name, drop)
    except MemoryError:
        k.kc_free(content)
        raise
