# CPython's C functions on borrowed pointers, and those that differ between versions.
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t


cdef extern from *:
    """
    #include <string.h>
    #include <structmember.h> /* T_OBJECT_EX, which is Py_T_OBJECT_EX from 3.12 on */

    #ifdef __GNUC__
    #define kc_rarely(condition) __builtin_expect(!!(condition), 0)
    #else
    #define kc_rarely(condition) (condition)
    #endif

    /* A slot of an object, by its offset. */
    static inline PyObject **kc_slot(PyObject *object, Py_ssize_t offset) {
        return (PyObject **)((char *)object + offset);
    }

    /* The attribute of a member descriptor, without the lookup by name; NULL with an exception if unset. */
    static inline PyObject *kc_member(PyObject *descriptor, PyObject *object) {
        return Py_TYPE(descriptor)->tp_descr_get(descriptor, object, (PyObject *)Py_TYPE(object));
    }

    static inline void kc_replace(PyObject **slot, PyObject *value) {
        PyObject *old = *slot;
        *slot = value;
        Py_XDECREF(old);
    }

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

    /* Adds to {tag: bytes}, which is created with its first entry; false with an exception set if out of memory. */
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

    /* Conversion from and to big-endian integers of 16 bytes; -1 and an exception if the value is not one. */
    #if PY_VERSION_HEX >= 0x030D0000
    static inline PyObject *kc_int_from_16_bytes(const unsigned char *bytes) {
        return PyLong_FromUnsignedNativeBytes(bytes, 16, Py_ASNATIVEBYTES_BIG_ENDIAN);
    }
    static inline int kc_int_to_16_bytes(PyObject *value, unsigned char *bytes) {
        const int flags = Py_ASNATIVEBYTES_BIG_ENDIAN | Py_ASNATIVEBYTES_UNSIGNED_BUFFER | Py_ASNATIVEBYTES_REJECT_NEGATIVE;
        if (!PyLong_Check(value)) return -1;
        Py_ssize_t size = PyLong_AsNativeBytes(value, bytes, 16, flags);
        if (size > 16) PyErr_SetString(PyExc_OverflowError, "more than 16 bytes");
        return size >= 0 && size <= 16 ? 0 : -1;
    }
    #else
    static inline PyObject *kc_int_from_16_bytes(const unsigned char *bytes) { return _PyLong_FromByteArray(bytes, 16, 0, 0); }
    static inline int kc_int_to_16_bytes(PyObject *value, unsigned char *bytes) {
        return PyLong_Check(value) ? _PyLong_AsByteArray((PyLongObject *)value, bytes, 16, 0, 0) : -1;
    }
    #endif

    /* The value of an exact int of one digit (absolute value below 2**30); false for any other object. */
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

    /* The bytes of an ASCII str; NULL without an exception for any other object. */
    static inline const char *kc_ascii(PyObject *object, Py_ssize_t *size) {
        if (!PyUnicode_CheckExact(object) || !PyUnicode_IS_COMPACT_ASCII(object)) return NULL;
        *size = PyUnicode_GET_LENGTH(object);
        return (const char *)PyUnicode_DATA(object);
    }

    /* CPython 3.11 may collect garbage whenever an object is created, later versions only after C code has returned.
     * The parts of a new list cannot be garbage, and no other thread runs meanwhile. So no Python code sees the list
     * before it is complete. */
    #if PY_VERSION_HEX < 0x030C0000
    static inline int kc_pause_collector(void) { return PyGC_Disable(); }
    static inline void kc_resume_collector(int paused) {
        if (paused) PyGC_Enable();
    }
    #else
    static inline int kc_pause_collector(void) { return 0; }
    static inline void kc_resume_collector(int paused) { (void)paused; }
    #endif

    /* The same without a GIL, where other threads see the objects that the collector tracks. */
    #ifdef Py_GIL_DISABLED
    static inline void kc_hide(PyObject *list) { PyObject_GC_UnTrack(list); }
    static inline void kc_show(PyObject *list) { PyObject_GC_Track(list); }
    #else
    static inline void kc_hide(PyObject *list) { (void)list; }
    static inline void kc_show(PyObject *list) { (void)list; }
    #endif

    static inline PyObject **kc_items(PyObject *list_or_tuple) { return PySequence_Fast_ITEMS(list_or_tuple); }
    """
    bint kc_rarely(bint condition) noexcept    # a hint for the compiler
    PyObject **kc_slot(PyObject *object, Py_ssize_t offset) noexcept
    PyObject *kc_member(PyObject *descriptor, PyObject *object) noexcept
    void kc_replace(PyObject **slot, PyObject *value) noexcept
    PyObject *kc_type_new(PyTypeObject *type) noexcept
    PyObject *kc_int_from_16_bytes(const unsigned char *bytes) noexcept
    int kc_int_to_16_bytes(PyObject *value, unsigned char *bytes) noexcept
    bint kc_short_int(PyObject *object, int64_t *value) noexcept
    const char *kc_ascii(PyObject *object, Py_ssize_t *size) noexcept
    bint kc_pause_collector() noexcept
    void kc_resume_collector(bint paused) noexcept
    void kc_hide(PyObject *list) noexcept
    void kc_show(PyObject *list) noexcept
    PyObject **kc_items(PyObject *list_or_tuple) noexcept
    PyObject *kc_byte_view(PyObject *source) noexcept
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

    PyObject *PyType_GenericAlloc(PyTypeObject *type, Py_ssize_t items) noexcept
    int PyObject_GenericSetAttr(PyObject *o, PyObject *name, PyObject *value) noexcept

    bint PyLong_Check(PyObject *o) noexcept
    bint PyBool_Check(PyObject *o) noexcept
    bint PyIndex_Check(PyObject *o) noexcept
    bint PyUnicode_Check(PyObject *o) noexcept
    bint PyFloat_Check(PyObject *o) noexcept
    bint PyList_Check(PyObject *o) noexcept
    bint PyTuple_Check(PyObject *o) noexcept
    bint PyObject_TypeCheck(PyObject *o, PyTypeObject *type) noexcept

    PyObject *PyLong_FromLongLong(long long v) noexcept
    PyObject *PyUnicode_DecodeUTF8(const char *s, Py_ssize_t size, const char *errors) noexcept
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
