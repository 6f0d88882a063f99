# The objects that a message consists of: structs, parts and ints. Allocation is nearly half the time of decoding and
# dropping a message, so dead objects are kept and filled again.
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t

from kafkacodec.messages cimport _pyobject as py


cdef extern from *:
    """
    /* The plain path uses CPython's functions alone. It is taken without a GIL, under AddressSanitizer, which is to see
     * the use of a dead object, and with the switch PLAIN of setup.py. */
    #if defined(KC_PLAIN) || defined(Py_GIL_DISABLED) || defined(__SANITIZE_ADDRESS__)
    #define KC_KEEPS 0
    #else
    #define KC_KEEPS 1
    #endif

    /* Versions whose ints are known and were tested: their value can be replaced. Later ones keep dead ints themselves.
     * Debug builds count the objects that CPython's functions create. */
    #if KC_KEEPS && PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000 && !defined(Py_REF_DEBUG) && !defined(Py_TRACE_REFS)
    #define KC_KNOWN 1
    #else
    #define KC_KNOWN 0
    #endif

    enum {
        KC_KEPT_BYTES = KC_KEEPS * (2560 << 10),
        KC_KEPT_WORDS = 64,               /* size of the largest struct that is kept */
        KC_KEPT_INTS = 8192,
        KC_INT_BYTES = 32,                /* what an int of one digit takes */
        KC_LEAST_SHARED_INT = -5,
        KC_SHARED_INTS = 262,             /* that CPython has only once */
        KC_PLAIN_DEPTH = KC_KEEPS * 32    /* structs within structs that are freed without CPython's guard of the stack */
    };

    typedef struct {
        Py_ssize_t limit, room;           /* in bytes, of structs and parts; how many may still be kept */
        PyObject *structs[KC_KEPT_WORDS]; /* dead, by size, linked through their first slots; their slots are empty */
        PyObject *parts;                  /* dead, linked through their sources */
        PyObject *ints[KC_KEPT_INTS];     /* each with one reference, from here */
        Py_ssize_t int_count, int_limit;
        PyObject *shared_ints[KC_SHARED_INTS];
        int depth;                        /* of the structs that are being freed */
    } kc_memory;

    /* The content of a slot of a decoded message until first access: records, or an array of structs. */
    typedef struct {
        PyObject_HEAD
        PyObject *source;
        const uint8_t *data; /* of its first item */
        Py_ssize_t size;
        Py_ssize_t count;
        const void *array; /* the Op of an array; NULL for records */
    } kc_part;

    static inline kc_part *kc_as_part(PyObject *self) { return (kc_part *)self; }

    static inline PyObject **kc_struct_link(PyObject *self) { return (PyObject **)(self + 1); }

    static inline void kc_free_structs_and_parts(kc_memory *memory) {
        PyObject *next;
        for (int words = 0; words < KC_KEPT_WORDS; words++) {
            for (PyObject *dead = memory->structs[words]; dead != NULL; dead = next) {
                next = *kc_struct_link(dead);
                /* PyObject_GC_Del reads from the class how much is before the object; the class may be gone. */
                Py_SET_TYPE(dead, &PyTuple_Type);
                PyObject_GC_Del(dead);
            }
            memory->structs[words] = NULL;
        }
        for (PyObject *dead = memory->parts; dead != NULL; dead = next) {
            next = kc_as_part(dead)->source;
            PyObject_Free(dead);
        }
        memory->parts = NULL;
        memory->room = memory->limit;
    }

    /* Makes a dead object a new one. */
    static inline void kc_revive(PyObject *self, PyTypeObject *type) {
    #if KC_KNOWN
        Py_SET_REFCNT(self, 1);
        Py_SET_TYPE(self, type);
        if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) Py_INCREF(type);
    #else
        PyObject_Init(self, type);
    #endif
    }

    /* A new object of a class from new_class, with empty slots. */
    static inline PyObject *kc_struct_new(kc_memory *memory, PyTypeObject *type) {
        size_t words = (size_t)type->tp_basicsize / sizeof(PyObject *);
        PyObject *self = words < KC_KEPT_WORDS ? memory->structs[words] : NULL;
        if (kc_rarely(self == NULL)) return type->tp_alloc(type, 0);
        memory->structs[words] = *kc_struct_link(self);
        memory->room += type->tp_basicsize;
        *kc_struct_link(self) = NULL;
        kc_revive(self, type);
        PyObject_GC_Track(self);
        return self;
    }

    static inline PyObject *kc_part_new(
        kc_memory *memory, PyTypeObject *type, PyObject *source, const uint8_t *data, Py_ssize_t size) {
        PyObject *self = memory->parts;
        if (self != NULL) {
            memory->parts = kc_as_part(self)->source;
            memory->room += (Py_ssize_t)sizeof(kc_part);
            kc_revive(self, type);
        } else {
            self = (PyObject *)PyObject_New(kc_part, type);
            if (self == NULL) return NULL;
        }
        kc_as_part(self)->source = Py_NewRef(source);
        kc_as_part(self)->data = data;
        kc_as_part(self)->size = size;
        kc_as_part(self)->count = 0;
        kc_as_part(self)->array = NULL;
        return self;
    }

    #if KC_KNOWN
    /* Whether an object is an exact int of one digit, which is not 0. */
    static inline int kc_one_digit(PyObject *object) {
        if (!PyLong_CheckExact(object)) return 0;
    #if PY_VERSION_HEX >= 0x030C0000
        return PyUnstable_Long_IsCompact((PyLongObject *)object) && ((PyLongObject *)object)->long_value.ob_digit[0];
    #else
        return Py_SIZE(object) == 1 || Py_SIZE(object) == -1;
    #endif
    }
    #endif

    static inline PyObject *kc_int_new(kc_memory *memory, int64_t value) {
        uint64_t place = (uint64_t)value - (uint64_t)KC_LEAST_SHARED_INT;
        if (place < KC_SHARED_INTS) return Py_NewRef(memory->shared_ints[place]);
    #if KC_KNOWN
        uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        if (size <= PyLong_MASK && memory->int_count) {
            PyLongObject *self = (PyLongObject *)memory->ints[--memory->int_count];
    #if PY_VERSION_HEX >= 0x030C0000
            self->long_value.lv_tag = ((uintptr_t)1 << _PyLong_NON_SIZE_BITS) | (value < 0 ? 2 : 0);
            self->long_value.ob_digit[0] = (digit)size;
    #else
            Py_SET_SIZE(self, value < 0 ? -1 : 1);
            self->ob_digit[0] = (digit)size;
    #endif
            return (PyObject *)self;
        }
    #endif
        return PyLong_FromLongLong(value);
    }

    /* Whether an int of one digit without other references was kept. */
    static inline int kc_int_keep(kc_memory *memory, PyObject *value) {
    #if KC_KNOWN
        if (memory->int_count == memory->int_limit || !kc_one_digit(value)) return 0;
        memory->ints[memory->int_count++] = value;
        return 1;
    #else
        (void)memory, (void)value;
        return 0;
    #endif
    }

    /* A part of a memoryview from kc_byte_view. */
    static inline PyObject *kc_byte_slice(PyObject *view, Py_ssize_t begin, Py_ssize_t size) {
    #if KC_KNOWN /* as slicing does, without a slice object and its ints */
        PyObject *part = PyMemoryView_FromObject(view);
        if (part == NULL) return NULL;
        Py_buffer *buffer = PyMemoryView_GET_BUFFER(part);
        buffer->buf = (char *)buffer->buf + begin;
        buffer->len = buffer->shape[0] = size;
        return part;
    #else
        return PySequence_GetSlice(view, begin, begin + size);
    #endif
    }
    """
    Py_ssize_t KC_KEPT_BYTES

    ctypedef struct kc_memory:
        pass

    ctypedef struct kc_part:
        PyObject *source
        const uint8_t *data
        Py_ssize_t size
        Py_ssize_t count
        const void *array

    kc_part *kc_as_part(PyObject *self) noexcept
    PyObject *kc_struct_new(kc_memory *memory, PyTypeObject *type) noexcept
    PyObject *kc_part_new(
        kc_memory *memory, PyTypeObject *type, PyObject *source, const uint8_t *data, Py_ssize_t size) noexcept
    object kc_byte_slice(object view, Py_ssize_t begin, Py_ssize_t size)
    PyObject *kc_int_new(kc_memory *memory, int64_t value) noexcept
