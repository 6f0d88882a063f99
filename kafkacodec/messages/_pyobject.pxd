# The parts of CPython's C interface that work on borrowed pointers, and the few layouts that differ between versions.
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t


cdef extern from *:
    """
    #include <string.h>
    #include <structmember.h>

    #ifdef __GNUC__
    #define kc_rarely(condition) __builtin_expect(!!(condition), 0)
    #else
    #define kc_rarely(condition) (condition)
    #endif

    /* A slot of an object, by the offset that its member descriptor holds. */
    static inline PyObject **kc_slot(PyObject *object, Py_ssize_t offset) {
        return (PyObject **)((char *)object + offset);
    }

    static inline void kc_replace(PyObject **slot, PyObject *value) {
        PyObject *old = *slot;
        *slot = value;
        Py_XDECREF(old);
    }

    static inline Py_ssize_t kc_slot_offset(PyObject *descriptor) {
        return Py_IS_TYPE(descriptor, &PyMemberDescr_Type) ? ((PyMemberDescrObject *)descriptor)->d_member->offset : -1;
    }

    static inline PyObject *kc_type_alloc(PyTypeObject *type) { return type->tp_alloc(type, 0); }

    /* An object of a class without constructor arguments. */
    static inline PyObject *kc_type_new(PyTypeObject *type) {
        PyObject *none = PyTuple_New(0);
        PyObject *made = none ? type->tp_new(type, none, NULL) : NULL;
        Py_XDECREF(none);
        return made;
    }

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
    static inline int kc_keep_tag(PyObject **dict, uint32_t tag, const char *data, Py_ssize_t size) {
        if (*dict == NULL || *dict == Py_None) {
            PyObject *made = PyDict_New();
            if (made == NULL) return 0;
            kc_replace(dict, made);
        }
        PyObject *key = PyLong_FromUnsignedLong(tag);
        PyObject *value = PyBytes_FromStringAndSize(data, size);
        int done = key && value && PyDict_SetItem(*dict, key, value) == 0;
        Py_XDECREF(key);
        Py_XDECREF(value);
        return done;
    }

    static inline PyObject *kc_int_from_16_bytes(const unsigned char *bytes) {
        return _PyLong_FromByteArray(bytes, 16, 0, 0);
    }

    static inline int kc_int_to_16_bytes(PyObject *value, unsigned char *bytes) {
        if (value == NULL || !PyLong_Check(value)) return -1;
    #if PY_VERSION_HEX >= 0x030D0000
        return _PyLong_AsByteArray((PyLongObject *)value, bytes, 16, 0, 0, 1);
    #else
        return _PyLong_AsByteArray((PyLongObject *)value, bytes, 16, 0, 0);
    #endif
    }

    /* The value of an int of one digit (less than 2**30 either way) and of no subclass; false for anything else. */
    static inline int kc_short_int(PyObject *object, int64_t *value) {
        if (!PyLong_CheckExact(object)) return 0;
    #if PY_VERSION_HEX >= 0x030C0000
        if (!PyUnstable_Long_IsCompact((PyLongObject *)object)) return 0;
        *value = PyUnstable_Long_CompactValue((PyLongObject *)object);
    #else
        Py_ssize_t digits = Py_SIZE(object);
        if (digits < -1 || digits > 1) return 0;
        *value = digits * (int64_t)((PyLongObject *)object)->ob_digit[0];
    #endif
        return 1;
    }

    /* The bytes of a str that holds them as they are in UTF-8; NULL without an exception for any other. */
    static inline const char *kc_ascii(PyObject *object, Py_ssize_t *size) {
        if (!PyUnicode_CheckExact(object) || !PyUnicode_IS_COMPACT_ASCII(object)) return NULL;
        *size = PyUnicode_GET_LENGTH(object);
        return (const char *)PyUnicode_DATA(object);
    }

    /* A str from UTF-8; most are ASCII, and copied. */
    static inline PyObject *kc_text(const uint8_t *data, Py_ssize_t size) {
        uint64_t eight, seen = 0;
        Py_ssize_t i = 0;
        for (; size - i >= 8; i += 8) {
            memcpy(&eight, data + i, 8);
            seen |= eight;
        }
        for (; i < size; i++) seen |= data[i];
        if (size < 2 || seen & 0x8080808080808080u) return PyUnicode_DecodeUTF8((const char *)data, size, NULL);
        PyObject *text = PyUnicode_New(size, 127);
        if (text != NULL) memcpy(PyUnicode_DATA(text), data, (size_t)size);
        return text;
    }

    static inline PyObject **kc_items(PyObject *list_or_tuple) { return PySequence_Fast_ITEMS(list_or_tuple); }
    """
    bint kc_rarely(bint condition) noexcept    # tells the compiler which way is the frequent one
    PyObject **kc_slot(PyObject *object, Py_ssize_t offset) noexcept
    void kc_replace(PyObject **slot, PyObject *value) noexcept
    Py_ssize_t kc_slot_offset(PyObject *descriptor) noexcept
    PyObject *kc_type_alloc(PyTypeObject *type) noexcept
    PyObject *kc_type_new(PyTypeObject *type) noexcept
    PyObject *kc_int_from_16_bytes(const unsigned char *bytes) noexcept
    int kc_int_to_16_bytes(PyObject *value, unsigned char *bytes) noexcept
    bint kc_short_int(PyObject *object, int64_t *value) noexcept
    const char *kc_ascii(PyObject *object, Py_ssize_t *size) noexcept
    PyObject *kc_text(const uint8_t *data, Py_ssize_t size) noexcept
    PyObject **kc_items(PyObject *list_or_tuple) noexcept
    PyObject *kc_byte_view(PyObject *source) noexcept
    PyObject *kc_byte_slice(PyObject *view, Py_ssize_t begin, Py_ssize_t size) noexcept
    bint kc_keep_tag(PyObject **dict, uint32_t tag, const char *data, Py_ssize_t size) noexcept

    ctypedef struct Py_buffer:
        void *buf
        PyObject *obj
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
    bint PyBool_Check(PyObject *o) noexcept
    bint PyIndex_Check(PyObject *o) noexcept
    bint PyUnicode_Check(PyObject *o) noexcept
    bint PyFloat_Check(PyObject *o) noexcept
    bint PyList_Check(PyObject *o) noexcept
    bint PyTuple_Check(PyObject *o) noexcept
    bint PyObject_TypeCheck(PyObject *o, PyTypeObject *type) noexcept

    PyObject *PyFloat_FromDouble(double v) noexcept
    PyObject *PyBytes_FromStringAndSize(const char *s, Py_ssize_t size) noexcept
    PyObject *PyList_New(Py_ssize_t size) noexcept
    PyObject *PyNumber_Index(PyObject *o) noexcept
    long long PyLong_AsLongLongAndOverflow(PyObject *o, int *overflow) noexcept
    double PyFloat_AsDouble(PyObject *o) noexcept
    const char *PyUnicode_AsUTF8AndSize(PyObject *o, Py_ssize_t *size) noexcept
    bint PyBytes_CheckExact(PyObject *o) noexcept
    bint PyByteArray_CheckExact(PyObject *o) noexcept
    bint PyMemoryView_Check(PyObject *o) noexcept
    char *PyBytes_AS_STRING(PyObject *o) noexcept
    int PyObject_RichCompareBool(PyObject *a, PyObject *b, int op) noexcept
    PyObject *PyErr_Occurred() noexcept
    void PyErr_Clear() noexcept
    int PyErr_ExceptionMatches(PyObject *exc) noexcept
    PyObject *PyExc_MemoryError
    PyObject *PyExc_Exception
    int Py_EQ
