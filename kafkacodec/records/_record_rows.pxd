# Objects of a record that nobody else refers to, filled again with the values of a later record: creating and freeing
# them is most of what a record costs.
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint8_t


cdef extern from *:
    """
    /* Versions whose tuples and bytes have no state that depends on their contents, except the hash that is reset below.
     * The free-threaded build counts references in two places. */
    #if PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
    #define KC_FILLS_TUPLES 1
    #else
    #define KC_FILLS_TUPLES 0
    #endif

    /* Versions whose ints are known and were tested. Later ones keep dead ints themselves. */
    #if KC_FILLS_TUPLES && PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000
    #define KC_FILLS_INTS 1
    #else
    #define KC_FILLS_INTS 0
    #endif

    enum { KC_MOST_SHARED_INT = 256, KC_LEAST_OWN_BYTES = 2 }; /* CPython has smaller ones only once */

    /* Since CPython 3.14 a tuple caches its hash; -1 is none. */
    static inline void kc_forget_hash(PyObject *tuple) {
    #if KC_FILLS_TUPLES && PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject *)tuple)->ob_hash = -1;
    #else
        (void)tuple;
    #endif
    }

    static inline int kc_is_plain_tuple(PyTypeObject *cls) {
        return PyType_IsSubtype(cls, &PyTuple_Type) && cls->tp_basicsize == PyTuple_Type.tp_basicsize &&
            cls->tp_itemsize == PyTuple_Type.tp_itemsize && cls->tp_dictoffset == 0;
    }

    static inline PyObject *kc_blank_tuple(PyTypeObject *cls, Py_ssize_t size) {
        PyObject *tuple = cls->tp_alloc(cls, size);
        if (tuple == NULL) return NULL;
        PyObject_GC_UnTrack(tuple);
        kc_forget_hash(tuple);
        return tuple;
    }

    /* Give a field an object, whose reference it takes, and release the one that it had. */
    static inline void kc_put(PyObject *tuple, Py_ssize_t field, PyObject *item) {
        PyObject *before = PyTuple_GET_ITEM(tuple, field);
        PyTuple_SET_ITEM(tuple, field, item);
        Py_XDECREF(before);
    }

    /* The same with an object that it often has already, and that somebody else has too: its references are counted only
     * where that changes, as each count waits for the one before. */
    static inline void kc_put_shared(PyObject *tuple, Py_ssize_t field, PyObject *item) {
        if (PyTuple_GET_ITEM(tuple, field) == item) return;
        Py_INCREF(item);
        kc_put(tuple, field, item);
    }

    static inline int kc_put_bytes(PyObject *tuple, Py_ssize_t field, const void *data, Py_ssize_t size) {
        PyObject *before = PyTuple_GET_ITEM(tuple, field), *made;
        if (KC_FILLS_TUPLES && before != NULL && PyBytes_CheckExact(before) && Py_REFCNT(before) == 1 &&
            PyBytes_GET_SIZE(before) == size && size >= KC_LEAST_OWN_BYTES) {
            memcpy(PyBytes_AS_STRING(before), data, (size_t)size);
            _Py_COMP_DIAG_PUSH
            _Py_COMP_DIAG_IGNORE_DEPR_DECLS
            ((PyBytesObject *)before)->ob_shash = -1;
            _Py_COMP_DIAG_POP
            return 0;
        }
        made = PyBytes_FromStringAndSize((const char *)data, size);
        if (made == NULL) return -1;
        kc_put(tuple, field, made);
        return 0;
    }

    /* Whether an int without other references now has this value: as many digits, one or two, are filled again. */
    static inline int kc_refill_int(PyObject *number, int64_t value) {
    #if KC_FILLS_INTS
        int size = value > (int64_t)PyLong_MASK ? 2 : 1;
        digit *digits;
        if (value <= KC_MOST_SHARED_INT || value >> 2 * PyLong_SHIFT || number == NULL || !PyLong_CheckExact(number) ||
            Py_REFCNT(number) != 1)
            return 0;
    #if PY_VERSION_HEX >= 0x030C0000
        if (((PyLongObject *)number)->long_value.lv_tag != (uintptr_t)size << _PyLong_NON_SIZE_BITS) return 0;
        digits = ((PyLongObject *)number)->long_value.ob_digit;
    #else
        if (Py_SIZE(number) != size) return 0;
        digits = ((PyLongObject *)number)->ob_digit;
    #endif
        digits[0] = (digit)(value & PyLong_MASK);
        if (size == 2) digits[1] = (digit)(value >> PyLong_SHIFT);
        return 1;
    #else
        (void)number, (void)value;
        return 0;
    #endif
    }

    static inline int kc_put_int(PyObject *tuple, Py_ssize_t field, int64_t value) {
        PyObject *made;
        if (kc_refill_int(PyTuple_GET_ITEM(tuple, field), value)) return 0;
        made = PyLong_FromLongLong(value);
        if (made == NULL) return -1;
        kc_put(tuple, field, made);
        return 0;
    }

    static inline int kc_has(PyObject *tuple, Py_ssize_t field) { return PyTuple_GET_ITEM(tuple, field) != NULL; }
    """
    bint KC_FILLS_TUPLES
    void kc_forget_hash(PyObject *tuple) noexcept
    bint kc_is_plain_tuple(PyTypeObject *cls) noexcept
    PyObject *kc_blank_tuple(PyTypeObject *cls, Py_ssize_t size) noexcept
    void kc_put_shared(PyObject *tuple, Py_ssize_t field, PyObject *item) noexcept
    int kc_put_bytes(PyObject *tuple, Py_ssize_t field, const uint8_t *data, Py_ssize_t size) except -1
    int kc_put_int(PyObject *tuple, Py_ssize_t field, int64_t value) except -1
    bint kc_has(PyObject *tuple, Py_ssize_t field) noexcept
