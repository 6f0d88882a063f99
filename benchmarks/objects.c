/* Makes the objects of a decoded message again, from the objects, by CPython's functions alone: what decoding cannot be
 * without, where dead objects are not kept. UUIDs are shared. */
#include <Python.h>
#include <string.h>

enum { MOST_SLOTS = 64 };

static PyTypeObject *types[MOST_SLOTS + 1]; /* by the number of slots */
static destructor dealloc_of_structs;

static inline Py_ssize_t slots_of(PyTypeObject *type) {
    return (type->tp_basicsize - (Py_ssize_t)sizeof(PyObject)) / (Py_ssize_t)sizeof(PyObject *);
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    PyObject **slots = (PyObject **)(self + 1);
    for (Py_ssize_t i = slots_of(Py_TYPE(self)); i-- > 0;) Py_VISIT(slots[i]);
    return 0;
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    PyObject **slots = (PyObject **)(self + 1);
    for (Py_ssize_t i = slots_of(type); i-- > 0;) Py_XDECREF(slots[i]);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyTypeObject *type_of(Py_ssize_t count) {
    if (count > MOST_SLOTS) return NULL;
    if (types[count] == NULL) {
        PyType_Slot slots[] = {{Py_tp_dealloc, (void *)dealloc}, {Py_tp_traverse, (void *)traverse}, {0, NULL}};
        PyType_Spec spec = {
            .name = "objects.Struct",
            .basicsize = (int)(sizeof(PyObject) + (size_t)count * sizeof(PyObject *)),
            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
            .slots = slots};
        types[count] = (PyTypeObject *)PyType_FromSpec(&spec);
    }
    return types[count];
}

static PyObject *again(PyObject *from);

static PyObject *struct_again(PyObject *from) {
    Py_ssize_t count = slots_of(Py_TYPE(from));
    PyTypeObject *type = type_of(count);
    PyObject *made = type == NULL ? NULL : type->tp_alloc(type, 0);
    if (made == NULL) return NULL;
    PyObject **slots = (PyObject **)(made + 1), **given = (PyObject **)(from + 1);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (given[i] != NULL && (slots[i] = again(given[i])) == NULL) {
            Py_DECREF(made);
            return NULL;
        }
    }
    return made;
}

static PyObject *list_again(PyObject *from) {
    PyObject *made = PyList_New(PyList_GET_SIZE(from));
    for (Py_ssize_t i = 0; made != NULL && i < PyList_GET_SIZE(from); i++) {
        PyObject *item = again(PyList_GET_ITEM(from, i));
        if (item == NULL) Py_CLEAR(made);
        else PyList_SET_ITEM(made, i, item);
    }
    return made;
}

/* A part of the message that is not read yet has the size and the fate of a `bytes` object without content. */
static PyObject *part_again(PyObject *from) {
    return PyBytes_FromStringAndSize(NULL, Py_TYPE(from)->tp_basicsize - (Py_ssize_t)sizeof(PyBytesObject));
}

static PyObject *again(PyObject *from) {
    PyTypeObject *type = Py_TYPE(from);
    if (type == &PyLong_Type) return PyLong_FromLongLong(PyLong_AsLongLong(from));
    if (type->tp_dealloc == dealloc_of_structs) return struct_again(from);
    if (type == &PyList_Type) return list_again(from);
    if (type == &PyUnicode_Type) {
        Py_ssize_t size;
        const char *text = PyUnicode_AsUTF8AndSize(from, &size);
        return text == NULL ? NULL : PyUnicode_DecodeUTF8(text, size, NULL);
    }
    if (strcmp(type->tp_name, "kafkacodec.messages._struct.Part") == 0) return part_again(from);
    return Py_NewRef(from);
}

/* A message of such objects, made again without the garbage collector. */
PyObject *objects_again(PyObject *message) {
    dealloc_of_structs = Py_TYPE(message)->tp_dealloc;
    int collects = PyGC_Disable();
    PyObject *made = again(message);
    if (collects) PyGC_Enable();
    return made;
}
