# Records in an `async for`: no frame of Python code runs for a record that is there.
cimport cython
from cpython.object cimport PyObject, PyTypeObject


cdef extern from *:
    """
    /* Ends an iterator with a value, which may be a tuple. */
    static void kc_stop_with(PyObject *value) {
        PyObject *stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, value, NULL);
        if (stop == NULL) return;
        PyErr_SetObject(PyExc_StopIteration, stop);
        Py_DECREF(stop);
    }

    static void kc_refuse_again(void) {
        PyErr_SetString(PyExc_RuntimeError, "the next record was already awaited: ask for another one");
    }

    static PyObject *kc_more(PyObject *owner) {
        return PyObject_CallMethod(owner, "_more", NULL);
    }

    static int kc_raised(void) { return -1; }

    typedef PySendResult (*kc_send)(PyObject *, PyObject *, PyObject **);

    /* Replace what Cython makes of methods: these end without a traceback, or even without an exception. */
    static void kc_set_slots(PyTypeObject *type, iternextfunc next, kc_send send) {
        type->tp_iternext = next;
        type->tp_as_async->am_send = send;
    }
    """
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT
    ctypedef PyObject *(*iternextfunc)(PyObject *) noexcept
    ctypedef PySendResult (*kc_send)(PyObject *, PyObject *, PyObject **) noexcept
    void kc_stop_with(PyObject *value) noexcept
    void kc_refuse_again() noexcept
    PyObject *kc_more(object owner) noexcept
    int kc_raised() except -1
    void kc_set_slots(PyTypeObject *type, iternextfunc next, kc_send send) noexcept


cdef extern from "Python.h":
    PyObject *PyIter_Next(object iterator) noexcept
    PySendResult PyIter_Send(object iterator, PyObject *value, PyObject **result) noexcept
    PyObject *PyErr_Occurred() noexcept
    void Py_DECREF(PyObject *) noexcept


@cython.auto_pickle(False)
@cython.freelist(8)
cdef class NextRecord:
    """A coroutine that takes the next record when it is awaited, or waits in `Iterating._more` for one."""
    cdef Iterating owner
    cdef object waiting  # the coroutine of `_more`
    cdef bint over

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)

    def send(self, value):
        cdef PyObject *result = NULL
        cdef PySendResult how = step(<PyObject *> self, <PyObject *> value, &result)
        if how == PYGEN_NEXT:
            item = <object> result
            Py_DECREF(result)
            return item
        if how == PYGEN_RETURN:
            kc_stop_with(result)
            Py_DECREF(result)
        kc_raised()

    def throw(self, *exception):
        if self.over or self.owner is None:
            kc_refuse_again()
            kc_raised()
        if self.waiting is None:
            self.waiting = self.owner._more()  # it raises the exception before it begins
        try:
            return self.waiting.throw(*exception)
        except BaseException:
            self.end()
            raise

    def close(self):
        waiting = self.waiting
        self.end()
        if waiting is not None:
            waiting.close()

    cdef void end(self) noexcept:
        self.over = True
        self.waiting = None


cdef PySendResult step(PyObject *this, PyObject *value, PyObject **result) noexcept:
    cdef NextRecord self = <NextRecord> this
    cdef PyObject *made
    cdef PySendResult how
    result[0] = NULL
    if self.over or self.owner is None:  # None: it was made without an iterator, or is garbage
        kc_refuse_again()
        return PYGEN_ERROR
    waiting = self.waiting
    if waiting is None:
        records = self.owner._records
        if records is not None:
            result[0] = PyIter_Next(records)
            if result[0] != NULL:
                self.over = True
                return PYGEN_RETURN
            if PyErr_Occurred() != NULL:
                self.over = True
                return PYGEN_ERROR
        made = kc_more(self.owner)
        if made == NULL:
            self.over = True
            return PYGEN_ERROR
        waiting = self.waiting = <object> made
        Py_DECREF(made)
    how = PyIter_Send(waiting, value, result)
    if how != PYGEN_NEXT:
        self.end()
    return how


cdef PyObject *next_of(PyObject *this) noexcept:
    cdef PyObject *result = NULL
    cdef PySendResult how = step(this, <PyObject *> None, &result)
    if how == PYGEN_RETURN:
        kc_stop_with(result)
        Py_DECREF(result)
    return result if how == PYGEN_NEXT else NULL


kc_set_slots(<PyTypeObject *> NextRecord, next_of, step)


cdef class Iterating:
    cdef public object _records

    def __aiter__(self):
        return self

    def __anext__(self):
        cdef NextRecord made = NextRecord.__new__(NextRecord)
        made.owner = self
        return made
