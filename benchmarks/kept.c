/* A method that keeps its arguments, as the `send` of a producer has to, and does nothing else. */
#include <Python.h>

typedef struct {
    PyObject ob_base;
    PyObject **arguments;
    Py_ssize_t count, room;
} Kept;

static int keep(Kept *self, PyObject *const *given, Py_ssize_t count) {
    if (self->room - self->count < count) {
        Py_ssize_t room = 2 * self->room + count;
        PyObject **grown = PyMem_Realloc(self->arguments, (size_t)room * sizeof(PyObject *));
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        self->arguments = grown;
        self->room = room;
    }
    for (Py_ssize_t i = 0; i < count; i++) self->arguments[self->count++] = Py_NewRef(given[i]);
    return 0;
}

/* The arguments by position, and after them those by keyword. Returns what stands for the delivery. */
static PyObject *send(Kept *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    count += names == NULL ? 0 : PyTuple_GET_SIZE(names);
    return keep(self, given, count) ? NULL : Py_NewRef((PyObject *)self);
}

static PyObject *add_done_callback(Kept *self, PyObject *function) {
    if (keep(self, &function, 1)) return NULL;
    Py_RETURN_NONE;
}

/* Forget all; returns how many there were. */
static PyObject *flush(Kept *self, PyObject *Py_UNUSED(none)) {
    Py_ssize_t count = self->count;
    while (self->count) Py_DECREF(self->arguments[--self->count]);
    return PyLong_FromSsize_t(count);
}

static void dealloc(Kept *self) {
    PyTypeObject *type = Py_TYPE(self);
    while (self->count) Py_DECREF(self->arguments[--self->count]);
    PyMem_Free(self->arguments);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"send", (PyCFunction)(void (*)(void))send, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"add_done_callback", (PyCFunction)add_done_callback, METH_O, NULL},
    {"flush", (PyCFunction)flush, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_methods, methods}, {Py_tp_dealloc, (void *)dealloc}, {0, NULL}};
static PyType_Spec spec = {
    .name = "kept.Kept", .basicsize = sizeof(Kept), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "kept", .m_size = -1};

PyMODINIT_FUNC PyInit_kept(void) {
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
    if (module == NULL || type == NULL || PyModule_AddObjectRef(module, "Kept", type) < 0) return NULL;
    return module;
}
