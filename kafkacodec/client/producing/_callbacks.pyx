# What is called when the outcome of a record is known: an application may want that for each of its records.
cimport cython
from libc.stdint cimport int64_t

from kafkacodec._core cimport base as k
from kafkacodec._core._errors cimport exception_from

import logging

_log = logging.getLogger("kafkacodec.client.producer")

cdef struct Place:
    int64_t index, timestamp

# Of this process and those before it, since asking for its id takes longer than all else.
cdef int forks = 0


def forked():
    global forks
    forks += 1


# Deliveries are of the same size, so that those that are dropped are used again: as many as a batch has records.
@cython.auto_pickle(False)
@cython.freelist(1200)
cdef class Callback:
    """A function to be called, with the delivery that is its `_outcome` if it is the application's. A delivery is one
    itself, with the first function that it gets: fewer objects wait for the outcome, and for the garbage collector."""

    cdef int run(self) except -1:
        if self._outcome is None:
            self.function()
            return 0
        return self.call(self._outcome)

    cdef int call(self, delivery) except -1:
        function, self.function = self.function, None
        try:
            function(delivery)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException:  # also CancelledError and exceptions of test frameworks, which have no receiver here
            _log.exception("a callback of a delivery failed")
        return 0


    cdef bint settle(self) except -1:
        """Take what is known; returns whether that is all."""
        return False


cdef Callback callback(function, delivery, int64_t index):
    cdef Callback made = Callback.__new__(Callback)
    made.function, made._outcome, made._index = function, delivery, index
    return made


def index_of(Callback one not None):
    return one._index


def end_loop(error):
    raise error


cdef class Callbacks:
    def __cinit__(self, loop=None):
        self.loop = loop
        self.parts = []
        self.callbacks = []
        self.forks = forks

    def __dealloc__(self):
        k.kc_buffer_free(&self.places)

    @property
    def is_own(self):
        return self.forks == forks

    cpdef find(self, int64_t index):
        cdef list parts = self.parts
        cdef Py_ssize_t low = 0, high = len(parts), middle
        while low < high:   # no Python code runs meanwhile, so that `parts` stays as it is
            middle = (low + high) // 2
            if <int64_t> (<tuple> parts[middle])[0] > index:
                high = middle
            else:
                low = middle + 1
        if low < len(parts) and <int64_t> (<tuple> parts[low])[1] <= index:
            return parts[low]
        return None

    def add(self, int64_t index, function):
        cdef Callback made = function if isinstance(function, Callback) else callback(function, None, index)
        self.append(made)
        return made

    def discard(self, Callback made not None):
        self.callbacks = [one for one in self.callbacks if one is not made]

    cdef int append(self, Callback made) except -1:
        self.callbacks.append(made)
        return 0

    cdef bint is_first(self):
        """Whether nothing is known, so that callbacks are added without a lock: no other thread runs Python code
        meanwhile."""
        return not self.parts and self.runs is None and self.forks == forks

    cdef bint append_first(self, Callback made) except -1:
        """Add a callback if nothing is known."""
        if not self.is_first():
            return False
        self.append(made)
        return True

    cdef bint append_function(self, function, int64_t index, int64_t timestamp, Maker maker) except -1:
        """Likewise, without the callback: it is made when it is called. Many thousands of objects that wait take longer
        than all else, as the garbage collector looks at each again and again."""
        cdef k.kc_error error
        cdef Place *place
        if not self.is_first():
            return False
        if k.kc_buffer_reserve(&self.places, sizeof(Place), &error):
            raise exception_from(&error)
        self.callbacks.append(function)
        place = <Place *> (self.places.data + self.places.size)
        place.index, place.timestamp = index, timestamp
        self.places.size += sizeof(Place)
        self.maker = maker
        return True

    @property
    def asks(self):
        return self.runs is not None

    def ask(self):
        cdef Callback one
        while self.runs is not None and self.settled < len(self.runs):
            one = self.runs[self.settled]
            if not one.settle():
                return
            self.settled += 1
        self.runs = None

    def watch(self):
        cdef Callback one
        cdef list runs = self.runs
        self.runs = None
        if runs is not None:
            for one in runs[self.settled:]:
                one.run()

    def due(self, int64_t first, int64_t end):
        cdef list now = [], later = [], before = self.callbacks
        cdef Callback one
        cdef Place place
        cdef Place *places = <Place *> self.places.data
        cdef int64_t last = -1
        cdef Py_ssize_t seen = 0, kept = 0
        cdef bint ordered = True
        self.callbacks, self.newest = later, None
        for waits in before:
            if isinstance(waits, Callback):
                one = waits
                place.index = one._index
            else:
                place = places[seen]
                seen += 1
                if first <= place.index < end:
                    one = self.maker(self, place.index, place.timestamp)
                    one.function = waits
                else:
                    places[kept] = place
                    kept += 1
            if first <= place.index < end:
                ordered = ordered and place.index >= last
                last = place.index
                now.append(one)
            else:
                later.append(waits)
        self.places.size = <size_t> kept * sizeof(Place)
        if not ordered:
            now.sort(key=index_of)
        return now

    def call(self, list due not None):
        cdef Callback one
        unseen = self.unseen
        for one in due:
            if unseen is not None and one._outcome is not None:     # of the application
                unseen.look(one._index)
            try:
                one.run()
            except BaseException as error:
                if self.loop is None or one._outcome is None:
                    raise
                self.loop.call_soon(end_loop, error)
