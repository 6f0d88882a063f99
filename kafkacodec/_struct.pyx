"""The base of all message classes: objects whose fields are slots, nothing else.

Classes are made by `kafkacodec.messages.classes`, which gives each its `Layout` and seals it here.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t

from kafkacodec cimport _pyobject as py


cdef extern from *:
    """
    /* Generated classes hold nothing but object pointers behind the object's head, and cannot be subclassed (see
     * kc_seal_class), so that one loop frees them; CPython's own routine looks each slot up in the class. The memory
     * of dead objects is kept, up to a limit for each size, for new objects of any class of that size; not under
     * AddressSanitizer, which is to see the use of a dead object. */
    enum { KC_KEPT_SIZES = 64 };
    #ifdef __SANITIZE_ADDRESS__
    enum { KC_KEPT_OBJECTS = 0 };
    #else
    enum { KC_KEPT_OBJECTS = 1024 };
    #endif
    static kc_kept kc_kept_objects[KC_KEPT_SIZES];

    /* The list for the objects of a class; the first one, which stays empty, for those that are too large. */
    static kc_kept *kc_kept_for(const PyTypeObject *type) {
        size_t words = (size_t)type->tp_basicsize / sizeof(PyObject *);
        return &kc_kept_objects[words < KC_KEPT_SIZES ? words : 0];
    }

    static inline void kc_struct_free(PyObject *self) {
        PyTypeObject *type = Py_TYPE(self);
        PyObject **slot = (PyObject **)((char *)self + sizeof(PyObject));
        PyObject **end = (PyObject **)((char *)self + type->tp_basicsize);
        kc_kept *kept = kc_kept_for(type);
        for (; slot < end; slot++) {
            PyObject *value = *slot;
            if (value == NULL) continue;
            *slot = NULL;
            Py_DECREF(value);
        }
        if (kept != kc_kept_objects && kept->count < KC_KEPT_OBJECTS) {
            self->ob_type = (PyTypeObject *)kept->first;
            kept->first = self;
            kept->count++;
        } else {
            PyObject_GC_Del(self);
        }
        Py_DECREF(type);
    }

    /* Messages are a few structs deep; what somebody nests deeper goes through CPython's own guard of the C stack. */
    enum { KC_PLAIN_DEPTH = 32 };
    static int kc_depth;

    static void kc_struct_dealloc(PyObject *self);

    static void kc_struct_dealloc_deep(PyObject *self) {
        Py_TRASHCAN_BEGIN(self, kc_struct_dealloc)
        kc_struct_free(self);
        Py_TRASHCAN_END
    }

    static void kc_struct_dealloc(PyObject *self) {
        PyObject_GC_UnTrack(self);
        if (kc_depth == KC_PLAIN_DEPTH) {
            kc_struct_dealloc_deep(self);
            return;
        }
        kc_depth++;
        kc_struct_free(self);
        kc_depth--;
    }

    static void kc_seal_class(PyTypeObject *type) {
        type->tp_dealloc = kc_struct_dealloc;
        type->tp_flags &= ~Py_TPFLAGS_BASETYPE;
        PyType_Modified(type);
    }
    """
    py.kc_kept *kc_kept_for(const PyTypeObject *type) noexcept
    void kc_seal_class(PyTypeObject *type) noexcept


@cython.final
@cython.no_gc
cdef class Source:
    """What was decoded, kept alive for the records that are parts of it."""

    def __dealloc__(self):
        if self.view is not None:
            py.PyBuffer_Release(&self.buffer)


cdef PyObject *new_source(PyObject *data) noexcept:
    cdef PyObject *view = py.kc_byte_view(data)
    cdef PyObject *made = NULL
    if view == NULL:
        return NULL
    made = py.kc_type_new(<PyTypeObject *> Source)
    # With a buffer of our own, nobody else can release the view.
    if made != NULL and py.PyObject_GetBuffer(view, &(<Source> made).buffer, PyBUF_SIMPLE) == 0:
        (<Source> made).view = <object> view
    elif made != NULL:
        py.Py_DECREF(made)
        made = NULL
    py.Py_DECREF(view)
    return made


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class Slice:
    """Records in a decoded struct until they are looked at, when a memoryview takes their place.

    A memoryview costs several times what decoding the rest of its struct does, and encoding needs none.
    """

    cdef object look(self):
        cdef PyObject *made
        if self.source is None:
            raise ValueError("a Slice that the decoder did not make")
        made = py.kc_byte_slice(<PyObject *> self.source.view, self.data - <const uint8_t *> self.source.buffer.buf, self.size)
        if made == NULL:
            raise MemoryError
        view = <object> made
        py.Py_DECREF(made)
        return view

    def __eq__(self, other):
        return self.look() == other


cdef PyObject *new_slice(PyObject *source, const uint8_t *data, Py_ssize_t size) noexcept:
    cdef PyObject *made = py.kc_type_new(<PyTypeObject *> Slice)
    if made != NULL:
        (<Slice> made).source = <Source> source
        (<Slice> made).data, (<Slice> made).size = data, size
    return made


cdef class Layout:
    """The fields of a class: names, where their slots are, and what they hold when nobody has set them.

    A default that is a mutable object is made by its factory, a list or a class, for every object anew; a lazy one
    only when it is looked at, until when the slot is empty. Decoded records are a Slice until then.
    """
    cdef readonly tuple names
    cdef readonly tuple defaults
    cdef readonly tuple factories
    cdef Py_ssize_t count
    cdef Py_ssize_t *offsets
    cdef bint *lazy

    def __cinit__(self, tuple names, tuple slots, tuple defaults, tuple factories, tuple lazy):
        self.names, self.defaults, self.factories = names, defaults, factories
        self.count = len(names)
        self.offsets = <Py_ssize_t *> PyMem_Malloc((self.count + 1) * sizeof(Py_ssize_t))
        self.lazy = <bint *> PyMem_Malloc((self.count + 1) * sizeof(bint))
        if self.offsets == NULL or self.lazy == NULL:
            raise MemoryError
        for i in range(self.count):
            self.offsets[i] = slot_offset(slots[i])
            self.lazy[i] = lazy[i]

    def __dealloc__(self):
        PyMem_Free(self.offsets)
        PyMem_Free(self.lazy)

    cdef object value(self, Struct of, Py_ssize_t i):
        """What field `i` of an object holds; what is made at the first look is made now."""
        cdef PyObject **slot = py.kc_slot(<PyObject *> of, self.offsets[i])
        cdef Slice records
        if slot[0] == NULL:
            store(slot, self.factories[i]() if self.factories[i] is not None else self.defaults[i])
        elif py.Py_TYPE(slot[0]) == <PyTypeObject *> Slice:
            records = <Slice> slot[0]
            store(slot, records.look())
        return <object> slot[0]


cdef inline void store(PyObject **slot, object value) noexcept:
    py.Py_INCREF(<PyObject *> value)
    py.kc_replace(slot, <PyObject *> value)


cdef class LazyField:
    """The attribute of a field whose value may be made when it is first looked at."""
    cdef Layout layout
    cdef Py_ssize_t index
    cdef type owner

    def __init__(self, Layout layout not None, Py_ssize_t index, type owner not None):
        if not 0 <= index < layout.count:
            raise IndexError(f"no field {index} of {layout.count}")
        self.layout, self.index, self.owner = layout, index, owner

    def __get__(self, instance, owner):
        if instance is None:
            return self
        self.require(instance)
        return self.layout.value(instance, self.index)

    def __set__(self, instance, value):
        self.require(instance)
        store(py.kc_slot(<PyObject *> instance, self.layout.offsets[self.index]), value)

    cdef inline int require(self, object instance) except -1:
        if type(instance) is not self.owner:
            raise TypeError(f"a field of {self.owner.__qualname__}, not of {type(instance).__qualname__}")
        return 0


cdef class Struct:
    """A struct of the Kafka protocol. Keyword arguments set fields; the others hold their defaults."""

    def __cinit__(self, *args, **values):
        self._unknown = None

    def __init__(self, **values):
        cdef Layout layout = type(self)._layout
        cdef Py_ssize_t used = 0
        cdef PyObject **slot
        for i in range(layout.count):
            slot = py.kc_slot(<PyObject *> self, layout.offsets[i])
            name = layout.names[i]
            if values and name in values:
                store(slot, values[name])
                used += 1
            elif layout.factories[i] is None:
                store(slot, layout.defaults[i])
            elif not layout.lazy[i]:
                store(slot, layout.factories[i]())
        if used != len(values):
            surplus = dict(values)
            if "unknown_tagged_fields" in surplus:
                self.unknown_tagged_fields = surplus.pop("unknown_tagged_fields")
            for name in layout.names:
                surplus.pop(name, None)
            if surplus:
                raise TypeError(f"{type(self).__qualname__} has no field {next(iter(surplus))!r}")

    @property
    def unknown_tagged_fields(self):
        """Tagged fields that the schema does not know, as {tag: bytes}; they are written back when encoding."""
        if self._unknown is None:
            self._unknown = {}
        return self._unknown

    @unknown_tagged_fields.setter
    def unknown_tagged_fields(self, value):
        self._unknown = dict(value) if value else None

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        cdef Layout layout = type(self)._layout
        for i in range(layout.count):
            if layout.value(self, i) != layout.value(other, i):
                return False
        return (self._unknown or None) == ((<Struct> other)._unknown or None)

    __hash__ = None

    def __repr__(self):
        cdef Layout layout = type(self)._layout
        shown = []
        for i in range(layout.count):
            value = layout.value(self, i)
            default = layout.factories[i]() if layout.factories[i] is not None else layout.defaults[i]
            if value != default:
                shown.append(f"{layout.names[i]}={bytes(value) if isinstance(value, memoryview) else value!r}")
        if self._unknown:
            shown.append(f"unknown_tagged_fields={self._unknown!r}")
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __copy__(self):
        cdef Layout layout = type(self)._layout
        return restore(type(self), tuple([layout.value(self, i) for i in range(layout.count)]), self._unknown)

    def __reduce__(self):
        cdef Layout layout = type(self)._layout
        values = [layout.value(self, i) for i in range(layout.count)]
        plain = tuple([bytes(v) if isinstance(v, memoryview) else v for v in values])
        return restore, (type(self), plain, self._unknown)


def restore(type cls, tuple values, unknown):
    """An object from the values of its fields in the order of the layout; for copy and pickle."""
    cdef Struct made = cls.__new__(cls)
    cdef Layout layout = cls._layout
    if len(values) != layout.count:
        raise TypeError(f"{cls.__qualname__} has {layout.count} fields, not {len(values)}")
    for i in range(layout.count):
        store(py.kc_slot(<PyObject *> made, layout.offsets[i]), values[i])
    made._unknown = dict(unknown) if unknown else None
    return made


def slot_offset(descriptor):
    """Where the slot of a member descriptor lies in its objects."""
    cdef Py_ssize_t offset = py.kc_slot_offset(<PyObject *> descriptor)
    if offset < <Py_ssize_t> sizeof(PyObject):
        raise TypeError(f"{descriptor!r} is not a slot")
    return offset


def seal(type cls):
    """Forbids subclasses of a generated class and gives it the quick destructor that this allows."""
    if not issubclass(cls, Struct) or cls.__dictoffset__ or cls.__weakrefoffset__:
        raise TypeError(f"{cls.__qualname__} is not a class of slots")
    kc_seal_class(<PyTypeObject *> cls)


cdef py.kc_kept *kept_for(PyTypeObject *cls) noexcept:
    return kc_kept_for(cls)
