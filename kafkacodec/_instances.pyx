"""How instances of the classes of `kafkacodec.datatypes` are made and compared: the same code for all of them."""
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyObject_GenericSetAttr

MISSING = type("MISSING", (), {"__repr__": lambda self: "MISSING"})()
cdef object REQUIRED = MISSING


cdef class Factory:
    """A default that is made for each instance."""

    cdef object make

    def __init__(self, make):
        self.make = make

    def __repr__(self):
        return "<factory>"


def initializer(tuple names, tuple defaults, Py_ssize_t num_positional, Py_ssize_t num_parameters, bint post_init):
    """initializer(names: tuple[str, ...], defaults: tuple[object, ...], num_positional: int, num_parameters: int,
    post_init: bool) -> Callable[..., None]

    The ``__init__`` of a class with these fields: first positional parameters, then those by name, then fields that
    are no parameters. `post_init` says whether it calls ``__post_init__``.
    """

    def __init__(self, *args, **options):
        cdef Py_ssize_t given = len(args), i
        cdef Py_ssize_t used = 0
        cdef PyObject *found
        cdef object value
        if given > num_positional:
            raise TypeError(
                f"{type(self).__qualname__}.__init__() takes {num_positional + 1} positional arguments but "
                f"{given + 1} were given"
            )
        for i in range(given):
            PyObject_GenericSetAttr(self, names[i], args[i])
        for i in range(given, len(names)):
            found = PyDict_GetItem(options, names[i]) if i < num_parameters else NULL
            if found != NULL:
                used += 1
                value = <object> found
            else:
                value = defaults[i]
                if type(value) is Factory:
                    value = (<Factory> value).make()
                elif value is REQUIRED:
                    refuse(f"{type(self).__qualname__}.__init__()", names[:num_parameters], defaults, given, options)
            PyObject_GenericSetAttr(self, names[i], value)
        if used != len(options):
            refuse(f"{type(self).__qualname__}.__init__()", names[:num_parameters], defaults, given, options)
        if post_init:
            self.__post_init__()

    return __init__


def comparer(tuple names):
    """comparer(names: tuple[str, ...]) -> Callable[[object, object], bool]

    The ``__eq__`` of a class with these fields.
    """

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        for name in names:
            if not getattr(self, name) == getattr(other, name):
                return False
        return True

    return __eq__


def hasher(tuple names):
    """hasher(names: tuple[str, ...]) -> Callable[[object], int]

    The ``__hash__`` of a class with these fields.
    """

    def __hash__(self):
        return hash(tuple([getattr(self, name) for name in names]))

    return __hash__


def new_row(cls, *args, **options):
    """new_row(cls: type, *args: object, **options: object) -> tuple

    The ``__new__`` of a named tuple.
    """
    cdef tuple names = cls._fields
    cdef dict defaults = None
    cdef Py_ssize_t given = len(args), used = 0, i
    cdef PyObject *found
    cdef list row
    if options or given != len(names):
        row = list(args)
        for i in range(given, len(names)):
            found = PyDict_GetItem(options, names[i])
            if found != NULL:
                used += 1
            else:
                defaults = cls._field_defaults if defaults is None else defaults
                found = PyDict_GetItem(defaults, names[i])
            if found == NULL:
                break
            row.append(<object> found)
        if len(row) != len(names) or used != len(options):
            defaults = cls._field_defaults
            refuse(f"{cls.__qualname__}.__new__()", names, tuple([defaults.get(name, REQUIRED) for name in names]),
                   given, options)
        args = tuple(row)
    return tuple.__new__(cls, args)


cdef int refuse(str function, tuple names, tuple defaults, Py_ssize_t given, dict options) except -1:
    """Raise the error that Python raises for wrong arguments."""
    if given > len(names):
        raise TypeError(f"{function} takes {len(names) + 1} positional arguments but {given + 1} were given")
    for name in options:
        if name not in names:
            raise TypeError(f"{function} got an unexpected keyword argument {name!r}")
        if name in names[:given]:
            raise TypeError(f"{function} got multiple values for argument {name!r}")
    missing = [
        repr(name)
        for name, default in list(zip(names, defaults))[given:]
        if default is REQUIRED and name not in options
    ]
    raise TypeError(
        f"{function} missing {len(missing)} required argument{'s' * (len(missing) > 1)}: {', '.join(missing)}"
    )
