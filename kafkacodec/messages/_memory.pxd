# Where the objects of decoded messages get their memory: from dead ones, which is kept up to a limit.
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t

from kafkacodec.messages cimport _pyobject


cdef extern from *:
    """
    /* Whether CPython wants to know of every object that is made and freed. */
    #if defined(Py_REF_DEBUG) || defined(Py_TRACE_REFS) || defined(Py_GIL_DISABLED)
    #define KC_COUNTS_OBJECTS 1
    #else
    #define KC_COUNTS_OBJECTS 0
    #endif

    /* Lists by size, linked through ob_type. */
    enum { KC_KEPT_WORDS = 64 };
    typedef struct {
        size_t room; /* bytes that may still be kept */
        PyObject *first[KC_KEPT_WORDS];
    } kc_kept;

    /* Those of structs, whose slots are empty, of Slices and of ints. */
    typedef struct {
        kc_kept structs, slices, ints;
    } kc_memory;

    /* An object in the memory of a dead one of that size; NULL where there is none. */
    static inline PyObject *kc_reuse(kc_kept *kept, PyTypeObject *type, size_t size) {
        size_t words = size / sizeof(PyObject *);
        PyObject *self = words < KC_KEPT_WORDS ? kept->first[words] : NULL;
        if (kc_rarely(self == NULL)) return NULL;
        kept->first[words] = (PyObject *)self->ob_type;
        kept->room += size;
    #if KC_COUNTS_OBJECTS
        PyObject_Init(self, type);
    #else /* the same without two calls */
        Py_SET_REFCNT(self, 1);
        Py_SET_TYPE(self, type);
        if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) Py_INCREF(type);
    #endif
        return self;
    }

    /* Whether the memory of a dead object was taken. */
    static inline int kc_keep(kc_kept *kept, PyObject *self, size_t size) {
        size_t words = size / sizeof(PyObject *);
        if (words >= KC_KEPT_WORDS || kept->room < size) return 0;
        self->ob_type = (PyTypeObject *)kept->first[words];
        kept->first[words] = self;
        kept->room -= size;
        return 1;
    }

    /* A new object of a sealed class, with empty slots. */
    static inline PyObject *kc_struct_alloc(kc_memory *memory, PyTypeObject *type) {
        PyObject *self = kc_reuse(&memory->structs, type, (size_t)type->tp_basicsize);
        if (kc_rarely(self == NULL)) return type->tp_alloc(type, 0);
        PyObject_GC_Track(self);
        return self;
    }

    /* Records: a part of a Source (see _struct.pyx). */
    typedef struct {
        PyObject_HEAD
        PyObject *source;
        const uint8_t *data;
        Py_ssize_t size;
    } kc_slice;

    static inline kc_slice *kc_as_slice(PyObject *self) { return (kc_slice *)self; }

    static inline PyObject *kc_slice_alloc(
        kc_memory *memory, PyTypeObject *type, PyObject *source, const uint8_t *data, Py_ssize_t size) {
        PyObject *self = kc_reuse(&memory->slices, type, sizeof(kc_slice));
        if (kc_rarely(self == NULL)) self = PyObject_New(PyObject, type);
        if (kc_rarely(self == NULL)) return NULL;
        kc_as_slice(self)->source = Py_NewRef(source);
        kc_as_slice(self)->data = data;
        kc_as_slice(self)->size = size;
        return self;
    }

    /* Small ints are shared by all of CPython; finding them here saves the call. */
    enum { KC_LEAST_SMALL_INT = -5, KC_SMALL_INTS = 262 };
    static PyObject *kc_small_ints[KC_SMALL_INTS];

    static inline int kc_fill_small_ints(void) {
        for (int i = 0; i < KC_SMALL_INTS; i++) {
            kc_small_ints[i] = PyLong_FromLong(i + KC_LEAST_SMALL_INT);
            if (kc_small_ints[i] == NULL) return -1;
        }
        return 0;
    }

    /* Every other int is allocated; CPython keeps the memory of dead ones from 3.14 on only. */
    #if PY_VERSION_HEX < 0x030E0000 && !KC_COUNTS_OBJECTS
    #define KC_KEEPS_INTS 1
    enum { KC_INT_BYTES = 32 };
    #else
    #define KC_KEEPS_INTS 0
    #endif

    static inline PyObject *kc_int(kc_memory *memory, int64_t value) {
        uint64_t place = (uint64_t)value - (uint64_t)KC_LEAST_SMALL_INT;
        if (place < KC_SMALL_INTS) return Py_NewRef(kc_small_ints[place]);
    #if KC_KEEPS_INTS
        uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        PyObject *self = magnitude <= PyLong_MASK ? kc_reuse(&memory->ints, &PyLong_Type, KC_INT_BYTES) : NULL;
        if (self != NULL) {
    #if PY_VERSION_HEX >= 0x030C0000
            ((PyLongObject *)self)->long_value.lv_tag = (1 << _PyLong_NON_SIZE_BITS) | (value < 0 ? 2 : 0);
            ((PyLongObject *)self)->long_value.ob_digit[0] = (digit)magnitude;
    #else
            Py_SET_SIZE(self, value < 0 ? -1 : 1);
            ((PyLongObject *)self)->ob_digit[0] = (digit)magnitude;
    #endif
            return self;
        }
    #else
        (void)memory;
    #endif
        return PyLong_FromLongLong(value);
    }
    """
    ctypedef struct kc_memory:
        pass

    ctypedef struct kc_slice:
        PyObject *source
        const uint8_t *data
        Py_ssize_t size

    PyObject *kc_struct_alloc(kc_memory *memory, PyTypeObject *type) noexcept
    PyObject *kc_slice_alloc(
        kc_memory *memory, PyTypeObject *type, PyObject *source, const uint8_t *data, Py_ssize_t size) noexcept
    kc_slice *kc_as_slice(PyObject *self) noexcept
    int kc_fill_small_ints() except -1
    PyObject *kc_int(kc_memory *memory, int64_t value) noexcept
