"""The base of all message classes, whose fields are slots.

`kafkacodec.messages.classes` creates the classes with `new_class` and gives them a `Layout`.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t

from kafkacodec.messages cimport _pyobject as py
from kafkacodec.messages._objects cimport KC_KEPT_BYTES, kc_as_part, kc_byte_slice, kc_memory, kc_part

from kafkacodec._core import _memory


cdef extern from *:
    """
    /* Objects of message classes contain only object pointers, starting with `_unknown`: one loop visits or drops them,
     * where CPython's own routines look each slot up in the class and in its bases. */
    #define KC_EACH_SLOT(self, slot) \\
        for (PyObject **slot = (PyObject **)((self) + 1), \\
            **end = (PyObject **)((char *)(self) + Py_TYPE(self)->tp_basicsize); slot < end; slot++)

    static int kc_struct_traverse(PyObject *self, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(self));
        KC_EACH_SLOT(self, slot) Py_VISIT(*slot);
        return 0;
    }

    static int kc_struct_clear(PyObject *self) {
        KC_EACH_SLOT(self, slot) Py_CLEAR(*slot);
        return 0;
    }

    /* A tenth of the memory is for ints, whose number alone is counted: they are the most frequent. */
    #define KC_ROOM(limit) ((limit) - (limit) / 10)
    #define KC_INTS(limit) ((limit) / 10 / KC_INT_BYTES)

    static kc_memory kc_kept_memory = {
        .limit = KC_ROOM(KC_KEPT_BYTES), .room = KC_ROOM(KC_KEPT_BYTES), .int_limit = KC_INTS(KC_KEPT_BYTES)};

    static int kc_fill_shared_ints(void) {
        for (int i = 0; i < KC_SHARED_INTS; i++) {
            kc_kept_memory.shared_ints[i] = PyLong_FromLong(i + KC_LEAST_SHARED_INT);
            if (kc_kept_memory.shared_ints[i] == NULL) return -1;
        }
        return 0;
    }

    static Py_ssize_t kc_kept_bytes_of_messages(void) {
        return kc_kept_memory.limit - kc_kept_memory.room + kc_kept_memory.int_count * KC_INT_BYTES;
    }

    /* Frees all dead objects. */
    static void kc_free_kept(void) {
        kc_memory *memory = &kc_kept_memory;
        kc_free_structs_and_parts(memory);
        while (memory->int_count) Py_DECREF(memory->ints[--memory->int_count]);
    }

    static void kc_limit_kept(Py_ssize_t limit) {
        kc_free_kept();
        if (limit > KC_KEPT_BYTES) limit = KC_KEPT_BYTES;
        kc_kept_memory.limit = kc_kept_memory.room = KC_ROOM(limit);
        kc_kept_memory.int_limit = KC_INTS(limit);
    }

    /* Room for a dead object. If none like it is kept, those of a larger message may have taken all of it: they go. */
    static inline int kc_take_room(Py_ssize_t size, int is_first) {
        kc_memory *memory = &kc_kept_memory;
        if (kc_rarely(memory->room < size)) {
            if (!is_first || memory->room == memory->limit) return 0;
            kc_free_structs_and_parts(memory);
            if (memory->room < size) return 0;
        }
        memory->room -= size;
        return 1;
    }

    static void kc_part_dealloc(PyObject *self) {
        Py_DECREF(kc_as_part(self)->source);
        if (kc_take_room(sizeof(kc_part), kc_kept_memory.parts == NULL)) {
            kc_as_part(self)->source = kc_kept_memory.parts;
            kc_kept_memory.parts = self;
        } else {
            PyObject_Free(self);
        }
    }

    static PyTypeObject kc_part_type = {
        PyVarObject_HEAD_INIT(NULL, 0)
        .tp_name = "kafkacodec.messages._struct.Part",
        .tp_basicsize = sizeof(kc_part),
        .tp_dealloc = kc_part_dealloc,
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    };

    /* Drops a reference. */
    static inline void kc_drop(PyObject *value) {
        if (Py_REFCNT(value) != 1) {
            Py_DECREF(value);
        } else if (kc_int_keep(&kc_kept_memory, value)) {
            return;
        } else if (KC_KNOWN && Py_IS_TYPE(value, &kc_part_type)) {
            kc_part_dealloc(value);
        } else {
            Py_DECREF(value);
        }
    }

    static inline void kc_struct_free(PyObject *self) {
        PyTypeObject *type = Py_TYPE(self);
        size_t words = (size_t)type->tp_basicsize / sizeof(PyObject *);
        kc_kept_memory.depth++;
        KC_EACH_SLOT(self, slot) {
            PyObject *value = *slot;
            if (value == NULL) continue;
            *slot = NULL;
            kc_drop(value);
        }
        kc_kept_memory.depth--;
        if (words < KC_KEPT_WORDS && kc_take_room(type->tp_basicsize, kc_kept_memory.structs[words] == NULL)) {
            *kc_struct_link(self) = kc_kept_memory.structs[words];
            kc_kept_memory.structs[words] = self;
        } else {
            type->tp_free(self);
        }
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
        if (kc_kept_memory.depth < KC_PLAIN_DEPTH) {
            kc_struct_free(self);
        } else {
            kc_struct_dealloc_deep(self);
        }
    }

    static int kc_is_made_here(PyTypeObject *type) { return type->tp_dealloc == kc_struct_dealloc; }

    /* A final class whose objects have a slot for each name, which outlives the class. */
    static PyObject *kc_new_class(const char *name, PyObject *bases, int basic_size, PyMemberDef *members) {
        PyType_Slot slots[] = {
            {Py_tp_members, members},
            {Py_tp_dealloc, (void *)kc_struct_dealloc},
            {Py_tp_traverse, (void *)kc_struct_traverse},
            {Py_tp_clear, (void *)kc_struct_clear},
            {0, NULL},
        };
        PyType_Spec spec = {
            .name = name, .basicsize = basic_size, .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, .slots = slots};
        return PyType_FromSpecWithBases(&spec, bases);
    }
    """
    ctypedef struct PyMemberDef:
        const char *name
        int type
        Py_ssize_t offset

    int T_OBJECT_EX
    PyTypeObject kc_part_type
    int PyType_Ready(PyTypeObject *type) except -1
    bint kc_is_made_here(PyTypeObject *type) noexcept
    kc_memory kc_kept_memory
    int kc_fill_shared_ints() except -1
    Py_ssize_t kc_kept_bytes_of_messages() noexcept
    void kc_free_kept() noexcept
    void kc_limit_kept(Py_ssize_t limit) noexcept
    object kc_new_class(const char *name, object bases, int basic_size, PyMemberDef *members)


@cython.final
@cython.no_gc
cdef class Source:
    """The decoded data, kept alive for the parts that refer to it."""

    def __dealloc__(self):
        if self.buffer.obj != NULL:
            py.PyBuffer_Release(&self.buffer)


cdef PyObject *new_source(PyObject *data, PyObject *program, MakeList make_list) noexcept:
    cdef PyObject *made = py.kc_type_new(<PyTypeObject *> Source)
    if made == NULL:
        return NULL
    (<Source> made).data = <object> data
    (<Source> made).program = <object> program
    (<Source> made).make_list = make_list
    if py.PyBytes_CheckExact(data):
        (<Source> made).start = <const uint8_t *> py.PyBytes_AS_STRING(data)
    elif not hold_view(<Source> made):
        py.Py_DECREF(made)
        return NULL
    return made


cdef bint hold_view(Source source) noexcept:
    """Hold the bytes by a private view, which other code cannot release; returns whether that succeeded."""
    cdef PyObject *view = py.kc_byte_view(<PyObject *> source.data)
    if view == NULL:
        return False
    source.view = <object> view
    py.Py_DECREF(view)
    if py.PyObject_GetBuffer(view, &source.buffer, PyBUF_SIMPLE) < 0:
        return False
    source.start = <const uint8_t *> source.buffer.buf
    return True


PyType_Ready(&kc_part_type)
kc_fill_shared_ints()


cdef PyTypeObject *part_type() noexcept:
    return &kc_part_type


cdef kc_memory *memory() noexcept:
    return &kc_kept_memory


cdef object look(PyObject **slot):
    cdef PyObject *part = slot[0]
    cdef Source source = <Source> kc_as_part(part).source
    made = source.make_list(part) if kc_as_part(part).array != NULL else records_of(source, kc_as_part(part))
    if slot[0] == part:    # the field was not set meanwhile
        store(slot, made)
    return <object> slot[0]


cdef object records_of(Source source, const kc_part *part):
    """The memoryview of a part with record bytes."""
    if source.view is None:
        source.view = memoryview(source.data)
    return kc_byte_slice(source.view, part.data - source.start, part.size)


cdef class Layout:
    """The fields of a class: names, slots and defaults.

    A mutable default is created by its factory, a list or a class, for each object; a lazy one only on first access,
    and its slot is empty until then. Decoded records and arrays are a Part until first access.
    """
    cdef type owner
    cdef readonly tuple names
    cdef readonly tuple defaults
    cdef readonly tuple factories
    cdef readonly tuple lazy
    cdef Py_ssize_t count

    def __cinit__(
        self, type owner not None, tuple names not None, tuple defaults not None, tuple factories not None, tuple lazy not None,
    ):
        self.owner = owner
        self.names, self.defaults, self.factories, self.lazy = names, defaults, factories, lazy
        self.count = slot_count(owner)
        if not self.count == len(names) == len(defaults) == len(factories) == len(lazy):
            raise ValueError("expected a name, a default, a factory and a lazy flag for each field")

    cdef object value(self, Struct of, Py_ssize_t i):
        """The value of field `i` of an object; a lazy one is created now."""
        cdef PyObject **slot = slot_at(<PyObject *> of, i)
        if slot[0] == NULL:
            store(slot, self.factories[i]() if self.factories[i] is not None else self.defaults[i])
        elif py.Py_TYPE(slot[0]) == &kc_part_type:
            return look(slot)
        return <object> slot[0]


cdef inline void store(PyObject **slot, object value) noexcept:
    py.Py_INCREF(<PyObject *> value)
    py.kc_replace(slot, <PyObject *> value)


cdef inline PyObject **slot_at(PyObject *of, Py_ssize_t i) noexcept:
    return py.kc_slot(of, slot_offset(i))


cdef object unknown_of(Struct of):
    """The unknown tagged fields, a dict, or None."""
    cdef PyObject *unknown = py.kc_slot(<PyObject *> of, UNKNOWN)[0]
    return <object> unknown if unknown != NULL else None


cdef int set_unknown(Struct of, object values) except -1:
    store(py.kc_slot(<PyObject *> of, UNKNOWN), dict(values) if values else None)
    return 0


cdef Layout layout_of(type cls):
    """The layout of a class. Not an inherited one: objects of a subclass would not have its slots."""
    cdef Layout layout = cls._layout
    if layout is None or layout.owner is not cls:
        raise TypeError(f"{cls.__qualname__} is not a message class")
    return layout


cdef class LazyField:
    """The attribute of a field whose value may be created on first access."""
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
        store(slot_at(<PyObject *> instance, self.index), value)

    cdef inline int require(self, object instance) except -1:
        if type(instance) is not self.layout.owner:
            raise TypeError(f"the field belongs to {self.layout.owner.__qualname__}, not to {type(instance).__qualname__}")
        return 0


cdef class Struct:
    """A struct of the Kafka protocol. Keyword arguments set fields; the others have their defaults."""

    def __init__(self, **values):
        cdef Layout layout = layout_of(type(self))
        cdef Py_ssize_t used = 0
        cdef PyObject **slot
        for i in range(layout.count):
            slot = slot_at(<PyObject *> self, i)
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
                from kafkacodec.arguments import suggestion  # not needed until something is wrong

                wrong = next(iter(surplus))
                hint = suggestion(wrong, layout.names, "fields")
                raise TypeError(f"{type(self).__qualname__} has no field {wrong!r}; {hint}")

    @property
    def unknown_tagged_fields(self):
        """Tagged fields that the schema does not define, as {tag: bytes}. Encoding writes them again."""
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
        store(slot_at(<PyObject *> made, i), values[i])
    set_unknown(made, unknown)
    return made


cdef Py_ssize_t slot_count(type cls) except -1:
    if not kc_is_made_here(<PyTypeObject *> cls):
        raise TypeError(f"{cls.__qualname__} is not a class of slots")
    return ((<PyTypeObject *> cls).tp_basicsize - slot_offset(0)) // <Py_ssize_t> sizeof(PyObject *)


# Keeps the names of classes and members alive, to which CPython only has pointers.
cdef dict NAMES = {}


cdef const char *kept_name(str name) except NULL:
    cdef bytes encoded = name.encode()
    encoded = NAMES.setdefault(encoded, encoded)
    return encoded


def new_class(str name not None, tuple bases not None, tuple fields not None):
    """new_class(name: str, bases: tuple[type, ...], fields: tuple[str, ...]) -> type

    A final subclass of Struct whose objects have only a slot for each field. `name` is "module.Class".
    """
    cdef Py_ssize_t i
    cdef Py_ssize_t count = len(fields)
    cdef PyMemberDef *members
    for base in bases:
        if not issubclass(base, Struct) or (<PyTypeObject *> base).tp_basicsize != slot_offset(0):
            raise TypeError(f"{base!r} is not a base without fields")
    members = <PyMemberDef *> PyMem_Calloc(count + 1, sizeof(PyMemberDef))
    if members == NULL:
        raise MemoryError
    try:
        for i in range(count):
            members[i].name = kept_name(fields[i])
            members[i].type, members[i].offset = T_OBJECT_EX, slot_offset(i)
        return kc_new_class(kept_name(name), bases, slot_offset(count), members)
    finally:
        PyMem_Free(members)


# Bytes of dead messages that are kept, unless keep_memory says less; 0 if the build keeps none.
MOST_KEPT = KC_KEPT_BYTES


def keep_memory(Py_ssize_t limit=KC_KEPT_BYTES):
    """keep_memory(limit: int = ...) -> None

    Frees the memory of dead messages that was kept for new ones, and limits it to `limit` bytes from now on.
    """
    kc_limit_kept(max(limit, 0))


def kept():
    """kept() -> int

    The bytes of dead messages that are kept for new ones.
    """
    return kc_kept_bytes_of_messages()


def trim():
    """trim() -> int

    Frees them; returns their number.
    """
    freed = kc_kept_bytes_of_messages()
    kc_free_kept()
    return freed


_memory.KEEPERS.append((kept, trim))
