# The parts of CPython's C interface that work on borrowed pointers, and the few layouts that differ between versions.
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport uint32_t


cdef extern from *:
    """
    #include <string.h>
    #include <structmember.h>

    /* A slot of an object, by the offset that its member descriptor holds. */
    static inline PyObject **kc_slot(PyObject *object, Py_ssize_t offset) {
        return (PyObject **)((char *)object + offset);
    }

    static inline Py_ssize_t kc_slot_offset(PyObject *descriptor) {
        return Py_IS_TYPE(descriptor, &PyMemberDescr_Type) ? ((PyMemberDescrObject *)descriptor)->d_member->offset : -1;
    }

    static inline PyObject *kc_type_alloc(PyTypeObject *type) { return type->tp_alloc(type, 0); }

    /* A memoryview of the bytes of any contiguous buffer. */
    static inline PyObject *kc_byte_view(PyObject *source) {
        PyObject *view = PyMemoryView_FromObject(source);
        if (view == NULL) return NULL;
        const Py_buffer *buffer = PyMemoryView_GET_BUFFER(view);
        if (buffer->ndim == 1 && buffer->itemsize == 1 && (!buffer->format || strcmp(buffer->format, "B") == 0)) return view;
        PyObject *cast = PyObject_CallMethod(view, "cast", "s", "B");
        Py_DECREF(view);
        return cast;
    }

    /* A part of what kc_byte_view gave. The same as slicing it, without the objects that a slice is made of. */
    static inline PyObject *kc_byte_slice(PyObject *view, Py_ssize_t begin, Py_ssize_t size) {
        PyObject *part = PyMemoryView_FromObject(view);
        if (part == NULL) return NULL;
        Py_buffer *buffer = PyMemoryView_GET_BUFFER(part);
        buffer->buf = (char *)buffer->buf + begin;
        buffer->len = buffer->shape[0] = size;
        return part;
    }

    /* {tag: bytes}, made with its first entry; false with an exception set where there is no memory. */
    static inline int kc_keep(PyObject **dict, uint32_t tag, const char *data, Py_ssize_t size) {
        if (*dict == Py_None) {
            PyObject *made = PyDict_New();
            if (made == NULL) return 0;
            Py_SETREF(*dict, made);
        }
        PyObject *key = PyLong_FromUnsignedLong(tag);
        PyObject *value = PyBytes_FromStringAndSize(data, size);
        int done = key && value && PyDict_SetItem(*dict, key, value) == 0;
        Py_XDECREF(key);
        Py_XDECREF(value);
        return done;
    }

    /* Item of a list or a tuple, borrowed. */
    static inline PyObject *kc_item(PyObject *sequence, Py_ssize_t i) {
        return PyList_Check(sequence) ? PyList_GET_ITEM(sequence, i) : PyTuple_GET_ITEM(sequence, i);
    }

    static inline PyObject *kc_int_from_16_bytes(const unsigned char *bytes) {
        return _PyLong_FromByteArray(bytes, 16, 0, 0);
    }

    static inline int kc_int_to_16_bytes(PyObject *value, unsigned char *bytes) {
        if (!PyLong_Check(value)) return -1;
    #if PY_VERSION_HEX >= 0x030D0000
        return _PyLong_AsByteArray((PyLongObject *)value, bytes, 16, 0, 0, 1);
    #else
        return _PyLong_AsByteArray((PyLongObject *)value, bytes, 16, 0, 0);
    #endif
    }

    /* Generated classes hold nothing but object pointers behind the object's head, and cannot be subclassed (see
     * kc_seal_class), so that one loop frees them; CPython's own routine looks each slot up in the class. The memory
     * of dead objects is kept, up to a limit for each size, for new objects of any class of that size. */
    enum { KC_KEPT_SIZES = 64, KC_KEPT_OBJECTS = 1024 };
    typedef struct {
        PyObject *first; /* linked through ob_type */
        int count;
    } kc_kept;
    static kc_kept kc_kept_objects[KC_KEPT_SIZES];

    static void kc_struct_dealloc(PyObject *self) {
        PyTypeObject *type = Py_TYPE(self);
        size_t size = (size_t)type->tp_basicsize;
        kc_kept *kept = &kc_kept_objects[size / sizeof(PyObject *) % KC_KEPT_SIZES];
        PyObject **slot = (PyObject **)((char *)self + sizeof(PyObject));
        PyObject **end = (PyObject **)((char *)self + size);
        PyObject_GC_UnTrack(self);
        for (; slot < end; slot++) Py_XDECREF(*slot);
        if (size / sizeof(PyObject *) < KC_KEPT_SIZES && kept->count < KC_KEPT_OBJECTS) {
            self->ob_type = (PyTypeObject *)kept->first;
            kept->first = self;
            kept->count++;
        } else {
            PyObject_GC_Del(self);
        }
        Py_DECREF(type);
    }

    /* A new object of a sealed class, with empty slots. */
    static inline PyObject *kc_struct_alloc(PyTypeObject *type) {
        size_t size = (size_t)type->tp_basicsize;
        kc_kept *kept = &kc_kept_objects[size / sizeof(PyObject *) % KC_KEPT_SIZES];
        PyObject *self = kept->first;
        if (self == NULL || size / sizeof(PyObject *) >= KC_KEPT_SIZES) return type->tp_alloc(type, 0);
        kept->first = (PyObject *)self->ob_type;
        kept->count--;
        memset((char *)self + sizeof(PyObject), 0, size - sizeof(PyObject));
        PyObject_Init(self, type);
        PyObject_GC_Track(self);
        return self;
    }

    static inline void kc_seal_class(PyTypeObject *type) {
        type->tp_dealloc = kc_struct_dealloc;
        type->tp_flags &= ~Py_TPFLAGS_BASETYPE;
        PyType_Modified(type);
    }
    """
    PyObject **kc_slot(PyObject *object, Py_ssize_t offset) noexcept
    Py_ssize_t kc_slot_offset(PyObject *descriptor) noexcept
    PyObject *kc_type_alloc(PyTypeObject *type) noexcept
    PyObject *kc_int_from_16_bytes(const unsigned char *bytes) noexcept
    int kc_int_to_16_bytes(PyObject *value, unsigned char *bytes) noexcept
    void kc_seal_class(PyTypeObject *type) noexcept
    PyObject *kc_struct_alloc(PyTypeObject *type) noexcept
    PyObject *kc_byte_view(PyObject *source) noexcept
    PyObject *kc_byte_slice(PyObject *view, Py_ssize_t begin, Py_ssize_t size) noexcept
    bint kc_keep(PyObject **dict, uint32_t tag, const char *data, Py_ssize_t size) noexcept
    PyObject *kc_item(PyObject *sequence, Py_ssize_t i) noexcept

    ctypedef struct Py_buffer:
        void *buf
        Py_ssize_t len

    int PyObject_GetBuffer(PyObject *o, Py_buffer *buffer, int flags) noexcept
    void PyBuffer_Release(Py_buffer *buffer) noexcept
    int _PyBytes_Resize(PyObject **bytes, Py_ssize_t size) noexcept
    Py_ssize_t Py_SIZE(PyObject *o) noexcept

    PyObject *Py_None
    PyObject *Py_True
    PyObject *Py_False

    PyTypeObject *Py_TYPE(PyObject *o) noexcept
    void Py_INCREF(PyObject *o) noexcept
    void Py_DECREF(PyObject *o) noexcept
    void Py_XDECREF(PyObject *o) noexcept

    int PyGC_Disable() noexcept
    int PyGC_Enable() noexcept

    bint PyLong_Check(PyObject *o) noexcept
    bint PyLong_CheckExact(PyObject *o) noexcept
    bint PyBool_Check(PyObject *o) noexcept
    bint PyIndex_Check(PyObject *o) noexcept
    bint PyUnicode_Check(PyObject *o) noexcept
    bint PyFloat_Check(PyObject *o) noexcept
    bint PyList_Check(PyObject *o) noexcept
    bint PyTuple_Check(PyObject *o) noexcept
    bint PyObject_TypeCheck(PyObject *o, PyTypeObject *type) noexcept

    PyObject *PyLong_FromLong(long v) noexcept
    PyObject *PyLong_FromLongLong(long long v) noexcept
    PyObject *PyFloat_FromDouble(double v) noexcept
    PyObject *PyUnicode_DecodeUTF8(const char *s, Py_ssize_t size, const char *errors) noexcept
    PyObject *PyBytes_FromStringAndSize(const char *s, Py_ssize_t size) noexcept
    PyObject *PyList_New(Py_ssize_t size) noexcept
    void PyList_SET_ITEM(PyObject *list, Py_ssize_t i, PyObject *item) noexcept
    PyObject *PyNumber_Index(PyObject *o) noexcept
    long long PyLong_AsLongLongAndOverflow(PyObject *o, int *overflow) noexcept
    double PyFloat_AsDouble(PyObject *o) noexcept
    const char *PyUnicode_AsUTF8AndSize(PyObject *o, Py_ssize_t *size) noexcept
    char *PyBytes_AS_STRING(PyObject *o) noexcept
    int PyObject_RichCompareBool(PyObject *a, PyObject *b, int op) noexcept
    PyObject *PyErr_Occurred() noexcept
    void PyErr_Clear() noexcept
    int PyErr_ExceptionMatches(PyObject *exc) noexcept
    PyObject *PyExc_MemoryError
    int Py_EQ
