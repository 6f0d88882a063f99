"""The base of all message classes: objects whose fields are slots, nothing else.

Classes are made by `kafkacodec.messages.classes`, which gives each its `Layout` and seals it here.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t

from kafkacodec.messages cimport _memory as mem
from kafkacodec.messages cimport _pyobject as py


cdef extern from *:
    """
    /* Under AddressSanitizer nothing is kept: it is to see the use of a dead object. */
    #ifdef __SANITIZE_ADDRESS__
    static kc_memory kc_kept_memory;
    #else
    static kc_memory kc_kept_memory = {.structs.room = 2 << 20, .slices.room = 256 << 10, .ints.room = 256 << 10};
    #endif

    static void kc_slice_dealloc(PyObject *self) {
        Py_DECREF(kc_as_slice(self)->source);
        if (!kc_keep(&kc_kept_memory.slices, self, sizeof(kc_slice))) PyObject_Free(self);
    }

    static PyTypeObject kc_slice_type = {
        PyVarObject_HEAD_INIT(NULL, 0)
        .tp_name = "kafkacodec.messages._struct.Slice",
        .tp_basicsize = sizeof(kc_slice),
        .tp_dealloc = kc_slice_dealloc,
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    };

    /* Messages are a few structs deep; what somebody nests deeper goes through CPython's own guard of the C stack. */
    enum { KC_PLAIN_DEPTH = 32 };
    static int kc_depth;

    /* Gives up a reference that was in a slot: what nobody else holds, at once, where it is of the most frequent types. */
    static inline void kc_drop(PyObject *value) {
        if (Py_REFCNT(value) != 1) {
            Py_DECREF(value);
            return;
        }
    #if !KC_COUNTS_OBJECTS
        if (Py_IS_TYPE(value, &kc_slice_type)) {
            kc_slice_dealloc(value);
            return;
        }
    #endif
    #if KC_KEEPS_INTS
        int64_t number;
        if (kc_short_int(value, &number) && kc_keep(&kc_kept_memory.ints, value, KC_INT_BYTES)) return;
    #endif
        kc_depth++;
        Py_DECREF(value);
        kc_depth--;
    }

    /* Generated classes hold nothing but object pointers behind the object's head, and cannot be subclassed (see
     * kc_seal_class), so that one loop frees them; CPython's own routine looks each slot up in the class. */
    static inline void kc_struct_free(PyObject *self) {
        PyTypeObject *type = Py_TYPE(self);
        size_t size = (size_t)type->tp_basicsize;
        PyObject **slot = (PyObject **)((char *)self + sizeof(PyObject));
        PyObject **end = (PyObject **)((char *)self + size);
        for (; slot < end; slot++) {
            PyObject *value = *slot;
            if (value == NULL) continue;
            *slot = NULL;
            kc_drop(value);
        }
        if (!kc_keep(&kc_kept_memory.structs, self, size)) PyObject_GC_Del(self);
        Py_DECREF(type);
    }

    static void kc_struct_dealloc(PyObject *self);

    static void kc_struct_dealloc_deep(PyObject *self) {
        Py_TRASHCAN_BEGIN(self, kc_struct_dealloc)
        kc_struct_free(self);
        Py_TRASHCAN_END
    }

    static void kc_struct_dealloc(PyObject *self) {
        PyObject_GC_UnTrack(self);
        if (kc_depth < KC_PLAIN_DEPTH) {
            kc_struct_free(self);
        } else {
            kc_struct_dealloc_deep(self);
        }
    }

    static int kc_is_sealed(PyTypeObject *type) { return type->tp_dealloc == kc_struct_dealloc; }

    static void kc_seal_class(PyTypeObject *type) {
        type->tp_dealloc = kc_struct_dealloc;
        type->tp_flags &= ~Py_TPFLAGS_BASETYPE;
        PyType_Modified(type);
    }
    """
    PyTypeObject kc_slice_type
    int PyType_Ready(PyTypeObject *type) except -1
    mem.kc_memory kc_kept_memory
    bint kc_is_sealed(PyTypeObject *type) noexcept
    void kc_seal_class(PyTypeObject *type) noexcept


@cython.final
@cython.no_gc
cdef class Source:
    """What was decoded, kept alive for the records that are parts of it."""

    def __dealloc__(self):
        if self.buffer.obj != NULL:
            py.PyBuffer_Release(&self.buffer)


cdef PyObject *new_source(PyObject *data) noexcept:
    cdef PyObject *made = py.kc_type_new(<PyTypeObject *> Source)
    if made == NULL:
        return NULL
    (<Source> made).data = <object> data
    if py.PyBytes_CheckExact(data):
        (<Source> made).start = <const uint8_t *> py.PyBytes_AS_STRING(data)
    elif not hold_view(<Source> made):
        py.Py_DECREF(made)
        return NULL
    return made


cdef bint hold_view(Source source) noexcept:
    """Whether the bytes are held by a view of our own, which nobody else can release."""
    cdef PyObject *view = py.kc_byte_view(<PyObject *> source.data)
    if view == NULL:
        return False
    source.view = <object> view
    py.Py_DECREF(view)
    if py.PyObject_GetBuffer(view, &source.buffer, PyBUF_SIMPLE) < 0:
        return False
    source.start = <const uint8_t *> source.buffer.buf
    return True


PyType_Ready(&kc_slice_type)


cdef PyTypeObject *slice_type() noexcept:
    return &kc_slice_type


cdef mem.kc_memory *memory() noexcept:
    return &kc_kept_memory


cdef object look(PyObject *records):
    """The memoryview that a Slice stands for."""
    cdef mem.kc_slice *part = mem.kc_as_slice(records)
    cdef Source source = <Source> part.source
    cdef PyObject *made
    if source.view is None:
        source.view = memoryview(source.data)
    made = py.kc_byte_slice(<PyObject *> source.view, part.data - source.start, part.size)
    if made == NULL:
        raise MemoryError
    view = <object> made
    py.Py_DECREF(made)
    return view


cdef class Layout:
    """The fields of a class: names, where their slots are, and what they hold when nobody has set them.

    A default that is a mutable object is made by its factory, a list or a class, for every object anew; a lazy one
    only when it is looked at, until when the slot is empty. Decoded records are a Slice until then.
    """
    cdef type owner
    cdef readonly tuple names
    cdef readonly tuple defaults
    cdef readonly tuple factories
    cdef Py_ssize_t count
    cdef Py_ssize_t *offsets
    cdef bint *lazy

    def __cinit__(
        self, type owner not None, tuple names not None, tuple slots not None, tuple defaults not None,
        tuple factories not None, tuple lazy not None,
    ):
        self.owner = owner
        self.names, self.defaults, self.factories = names, defaults, factories
        self.count = len(names)
        if not self.count == len(slots) == len(defaults) == len(factories) == len(lazy):
            raise ValueError("expected a name, a slot, a default, a factory and a lazy flag for each field")
        self.offsets = <Py_ssize_t *> PyMem_Malloc((self.count + 1) * sizeof(Py_ssize_t))
        self.lazy = <bint *> PyMem_Malloc((self.count + 1) * sizeof(bint))
        if self.offsets == NULL or self.lazy == NULL:
            raise MemoryError
        for i in range(self.count):
            self.offsets[i] = slot_offset(slots[i], owner)
            self.lazy[i] = lazy[i]

    def __dealloc__(self):
        PyMem_Free(self.offsets)
        PyMem_Free(self.lazy)

    cdef object value(self, Struct of, Py_ssize_t i):
        """What field `i` of an object holds; what is made at the first look is made now."""
        cdef PyObject **slot = py.kc_slot(<PyObject *> of, self.offsets[i])
        if slot[0] == NULL:
            store(slot, self.factories[i]() if self.factories[i] is not None else self.defaults[i])
        elif py.Py_TYPE(slot[0]) == &kc_slice_type:
            store(slot, look(slot[0]))
        return <object> slot[0]


cdef inline void store(PyObject **slot, object value) noexcept:
    py.Py_INCREF(<PyObject *> value)
    py.kc_replace(slot, <PyObject *> value)


cdef enum:
    UNKNOWN = sizeof(PyObject)     # where `_unknown` is in a Struct


cdef object unknown_of(Struct of):
    """The unknown tagged fields, a dict, or None."""
    cdef PyObject *unknown = py.kc_slot(<PyObject *> of, UNKNOWN)[0]
    return <object> unknown if unknown != NULL else None


cdef int set_unknown(Struct of, object values) except -1:
    store(py.kc_slot(<PyObject *> of, UNKNOWN), dict(values) if values else None)
    return 0


cdef Layout layout_of(type cls):
    """The layout of a class; no other's, whose slots its objects lack."""
    cdef Layout layout = cls._layout
    if layout is None or layout.owner is not cls:
        raise TypeError(f"{cls.__qualname__} is not a message class")
    return layout


cdef class LazyField:
    """The attribute of a field whose value may be made when it is first looked at."""
    cdef Layout layout
    cdef Py_ssize_t index

    def __cinit__(self, Layout layout not None, Py_ssize_t index):
        if not 0 <= index < layout.count:
            raise IndexError(f"field index {index} is out of range ({layout.count} fields)")
        self.layout, self.index = layout, index

    def __get__(self, instance, owner):
        if instance is None:
            return self
        self.require(instance)
        return self.layout.value(instance, self.index)

    def __set__(self, instance, value):
        self.require(instance)
        store(py.kc_slot(<PyObject *> instance, self.layout.offsets[self.index]), value)

    cdef inline int require(self, object instance) except -1:
        if type(instance) is not self.layout.owner:
            raise TypeError(f"the field belongs to {self.layout.owner.__qualname__}, not to {type(instance).__qualname__}")
        return 0


cdef class Struct:
    """A struct of the Kafka protocol. Keyword arguments set fields; the others hold their defaults."""

    def __init__(self, **values):
        cdef Layout layout = layout_of(type(self))
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
        if unknown_of(self) is None:
            store(py.kc_slot(<PyObject *> self, UNKNOWN), {})
        return unknown_of(self)

    @unknown_tagged_fields.setter
    def unknown_tagged_fields(self, value):
        set_unknown(self, value)

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        cdef Layout layout = layout_of(type(self))
        for i in range(layout.count):
            if layout.value(self, i) != layout.value(other, i):
                return False
        return (unknown_of(self) or None) == (unknown_of(other) or None)

    __hash__ = None

    def __repr__(self):
        cdef Layout layout = layout_of(type(self))
        shown = []
        for i in range(layout.count):
            value = layout.value(self, i)
            default = layout.factories[i]() if layout.factories[i] is not None else layout.defaults[i]
            if value != default:
                shown.append(f"{layout.names[i]}={bytes(value) if isinstance(value, memoryview) else value!r}")
        if unknown_of(self):
            shown.append(f"unknown_tagged_fields={unknown_of(self)!r}")
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __copy__(self):
        cdef Layout layout = layout_of(type(self))
        return restore(type(self), tuple([layout.value(self, i) for i in range(layout.count)]), unknown_of(self))

    def __reduce__(self):
        cdef Layout layout = layout_of(type(self))
        values = [layout.value(self, i) for i in range(layout.count)]
        plain = tuple([bytes(v) if isinstance(v, memoryview) else v for v in values])
        return restore, (type(self), plain, unknown_of(self))


def restore(type cls not None, tuple values not None, unknown):
    """An object from the values of its fields in the order of the layout; for copy and pickle."""
    cdef Struct made = cls.__new__(cls)
    cdef Layout layout = layout_of(cls)
    if len(values) != layout.count:
        raise TypeError(f"{cls.__qualname__} has {layout.count} fields, not {len(values)}")
    for i in range(layout.count):
        store(py.kc_slot(<PyObject *> made, layout.offsets[i]), values[i])
    set_unknown(made, unknown)
    return made


def slot_offset(descriptor, type owner not None):
    """Where the slot of a member descriptor lies in the objects of its class."""
    cdef Py_ssize_t offset = py.kc_slot_offset(<PyObject *> descriptor)
    if offset < <Py_ssize_t> sizeof(PyObject):
        raise TypeError(f"{descriptor!r} is not a slot")
    if descriptor.__objclass__ is not owner:
        raise TypeError(f"{descriptor!r} is not a slot of {owner.__qualname__}")
    return offset


cdef bint is_sealed(PyTypeObject *type) noexcept:
    return kc_is_sealed(type)


def seal(type cls not None):
    """Forbids subclasses of a generated class and gives it the quick destructor that this allows."""
    if not issubclass(cls, Struct) or cls.__dictoffset__ or cls.__weakrefoffset__:
        raise TypeError(f"{cls.__qualname__} is not a class with slots")
    kc_seal_class(<PyTypeObject *> cls)
