# What most values of a schema need before fastavro takes them: checks of records, arrays, maps and numbers.
from collections.abc import Mapping
from decimal import Decimal

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.set cimport PySet_Contains

from kafkacodec.arguments import suggestion
from kafkacodec.values.avro.mismatch import Mismatch

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char *where) except -1
    void Py_LeaveRecursiveCall()

NO_NUMBERS = frozenset(("nan", "inf", "-inf"))  # which JSON has as text
TYPE = "-type"  # with which fastavro has the name of a record in the record


cdef class Prepare:
    cdef object made(self, object value):
        return value

    def __call__(self, value):
        return self.made(value)


@cython.final
cdef class _Other(Prepare):
    """A function of Python."""
    cdef object function

    def __cinit__(self, function):
        self.function = function

    cdef object made(self, object value):
        return self.function(value)


cdef Prepare prepare_of(function):
    return function if isinstance(function, Prepare) else _Other(function)


@cython.final
cdef class Whole(Prepare):
    cdef long long least, most
    cdef int bits
    cdef object of_text, of_other

    def __cinit__(self, int bits, of_text=None, of_other=None):
        if bits not in (32, 64):
            raise ValueError("whole numbers have 32 or 64 bits")
        self.most = (<long long> 1 << (bits - 2)) - 1 + (<long long> 1 << (bits - 2))
        self.least = -self.most - 1
        self.bits, self.of_text, self.of_other = bits, of_text, of_other

    cdef object made(self, object value):
        cdef int overflow
        cdef long long number
        if not PyLong_CheckExact(value):
            if self.of_text is not None and isinstance(value, str):
                value = self.of_text(value)
            if isinstance(value, (bool, float, Decimal)):
                raise Mismatch(f"{value!r} is no whole number")
            if not isinstance(value, int):
                return value if self.of_other is None else self.of_other(value)
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow or not self.least <= number <= self.most:
            kind = "int" if self.bits == 32 else "long"
            raise Mismatch(f"{value} does not fit into {kind}, which has {self.bits} bits")
        return value


@cython.final
cdef class Boolean(Prepare):
    cdef object made(self, object value):
        if value is True or value is False:
            return value
        if isinstance(value, (str, int, float)):
            raise Mismatch(f"{value!r} is neither true nor false")
        return value


@cython.final
cdef class Float(Prepare):
    cdef object made(self, object value):
        if PyFloat_CheckExact(value):
            return value
        return float(value) if type(value) is int or (type(value) is str and value in NO_NUMBERS) else value


@cython.final
cdef class Optional(Prepare):
    cdef Prepare only, other
    cdef type own

    def __cinit__(self, own, only, other):
        self.own, self.only, self.other = own, None if only is None else prepare_of(only), prepare_of(other)

    cdef object made(self, object value):
        if value is None:
            return value
        if type(value) is not self.own:
            return self.other.made(value)
        return value if self.only is None else self.only.made(value)


@cython.final
cdef class Array(Prepare):
    cdef Prepare item

    def __cinit__(self, item):
        self.item = prepare_of(item)

    cdef object made(self, object value):
        cdef list given, changed = None
        cdef Py_ssize_t i = 0
        if not isinstance(value, list):
            return value
        given = value
        Py_EnterRecursiveCall(" in a value of Avro")
        try:
            while i < len(given):  # of which a function of Python may take items
                part = given[i]
                found = self.item.made(part)
                if found is not part:
                    if changed is None:
                        changed = list(given)
                    changed[i] = found
                i += 1
        except Mismatch as error:
            error.path.append(f"[{i}]")
            raise
        finally:
            Py_LeaveRecursiveCall()
        return given if changed is None else changed


@cython.final
cdef class Map(Prepare):
    cdef Prepare item

    def __cinit__(self, item):
        self.item = prepare_of(item)

    cdef object made(self, object value):
        cdef dict given, changed = None
        name = None
        if type(value) is dict:
            given = value
        elif isinstance(value, Mapping):
            given = changed = dict(value)
        else:
            return value
        Py_EnterRecursiveCall(" in a value of Avro")
        try:
            for name, part in given.items():
                found = self.item.made(part)
                if found is not part:
                    if changed is None:
                        changed = dict(given)
                    changed[name] = found
        except Mismatch as error:
            error.path.append(str(name))
            raise
        finally:
            Py_LeaveRecursiveCall()
        return given if changed is None else changed


@cython.final
cdef class Record(Prepare):
    cdef list names, required, fields
    cdef set known

    def __cinit__(self, names):
        self.names = list(names)
        self.known = {*self.names, TYPE}
        self.required, self.fields = [], []

    def add(self, str name not None, prepare, bint required):
        if prepare is not None:
            self.fields.append((name, prepare_of(prepare)))
        if required:
            self.required.append(name)

    cdef object made(self, object value):
        cdef dict given, changed = None
        cdef PyObject *place
        cdef str name = None
        cdef object part, found
        cdef tuple field
        if type(value) is dict:
            given = value
        elif isinstance(value, Mapping):
            given = dict(value)
        else:
            return value
        self.check(given)
        Py_EnterRecursiveCall(" in a value of Avro")
        try:
            for field in self.fields:
                name = <str> field[0]
                place = PyDict_GetItemWithError(given, name)
                part = None if place == NULL else <object> place
                found = (<Prepare> field[1]).made(part)
                if found is not part:
                    if changed is None:
                        changed = dict(given)
                    changed[name] = found
        except Mismatch as error:
            error.path.append(name)
            raise
        finally:
            Py_LeaveRecursiveCall()
        return value if changed is None else changed

    cdef int check(self, dict given) except -1:
        for name in given:
            if not PySet_Contains(self.known, name):
                raise Mismatch(f"unknown field {name!r}; {suggestion(str(name), self.names, 'fields')}")
        if len(given) < len(self.names):
            for name in self.required:
                if name not in given:
                    raise Mismatch(f"no field {name!r}")
        return 0
