"""The base of all message classes: objects whose fields are slots, nothing else.

Classes are made by `kafkacodec.messages.classes`, which gives each its `Layout` and seals it here.
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject

from kafkacodec cimport _pyobject as py


cdef class Layout:
    """The fields of a class: names, where their slots are, and what they hold when nobody has set them.

    A default that is a mutable object is made by its factory, a list or a class, for every object anew; a lazy one
    only when it is looked at, until when the slot is empty.
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
        """What field `i` of an object holds; an empty slot is filled with its default first."""
        cdef PyObject **slot = py.kc_slot(<PyObject *> of, self.offsets[i])
        if slot[0] == NULL:
            store(slot, self.factories[i]() if self.factories[i] is not None else self.defaults[i])
        return <object> slot[0]


cdef inline void store(PyObject **slot, object value) noexcept:
    cdef PyObject *old = slot[0]
    py.Py_INCREF(<PyObject *> value)
    slot[0] = <PyObject *> value
    py.Py_XDECREF(old)


cdef class LazyField:
    """The attribute of a field whose default is made when it is first looked at."""
    cdef Py_ssize_t offset
    cdef object factory
    cdef type owner

    def __init__(self, descriptor, factory, type owner):
        self.offset = slot_offset(descriptor)
        self.factory = factory
        self.owner = owner

    def __get__(self, instance, owner):
        if instance is None:
            return self
        cdef PyObject **slot = self.slot(instance)
        if slot[0] == NULL:
            store(slot, self.factory())
        return <object> slot[0]

    def __set__(self, instance, value):
        store(self.slot(instance), value)

    cdef PyObject **slot(self, object instance) except NULL:
        if type(instance) is not self.owner:
            raise TypeError(f"a field of {self.owner.__qualname__}, not of {type(instance).__qualname__}")
        return py.kc_slot(<PyObject *> instance, self.offset)


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


cdef PyObject *new_struct(PyTypeObject *cls) noexcept:
    cdef PyObject *made = py.kc_struct_alloc(cls)
    if made != NULL:
        py.Py_INCREF(py.Py_None)
        py.kc_slot(made, sizeof(PyObject))[0] = py.Py_None
    return made


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
    py.kc_seal_class(<PyTypeObject *> cls)
