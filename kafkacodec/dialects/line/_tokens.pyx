"""The inner loop of the line protocol: parses words into arguments."""
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT64_MAX, int64_t, uint64_t


def read_integer(str word not None):
    """read_integer(word: str) -> int"""
    cdef Py_ssize_t size = 0
    cdef const char *text = PyUnicode_AsUTF8AndSize(word, &size)
    cdef bint negative = size > 0 and text[0] == c"-"
    cdef Py_ssize_t at = negative
    cdef uint64_t value = 0, digit, limit
    limit = <uint64_t> INT64_MAX + negative
    if at == size:
        raise refused(word)
    while at < size:
        digit = <unsigned char> text[at] - <uint64_t> c"0"
        if digit > 9 or value > (limit - digit) // 10:
            raise refused(word)
        value = value * 10 + digit
        at += 1
    if negative:
        return <int64_t> (0 - value)
    return <int64_t> value


cdef object refused(str word):
    return ValueError(f"{word if len(word) <= 40 else word[:37] + '...'!r} is not an integer of 64 bits")


def read_words(tuple names not None, tuple readers not None, list words not None):
    """read_words(names, readers, words) -> dict[str, Any]"""
    cdef dict args = {}
    cdef Py_ssize_t i
    cdef str word
    cdef object reader
    if len(words) > len(names) or len(names) != len(readers):
        raise ValueError("more words than names")
    for i, word in enumerate(tuple(words)):    # a reader may change the list
        if not word:
            raise ValueError("empty word")
        reader = readers[i]
        args[names[i]] = word if reader is None else reader(word)
    return args
