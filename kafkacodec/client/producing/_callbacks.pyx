# What is called when the outcome of a record is known: an application may want that for each of its records.
cimport cython

import logging

_log = logging.getLogger("kafkacodec.client.producer")
# Of this process and those before it, since asking for its id takes longer than all else.
cdef int forks = 0


def forked():
    global forks
    forks += 1


# Deliveries are of the same size, so that those that are dropped are used again.
@cython.auto_pickle(False)
@cython.freelist(256)
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
        self.forks = forks

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
        if self.callbacks is not None and made in self.callbacks:
            self.callbacks.remove(made)

    cdef int append(self, Callback made) except -1:
        if self.callbacks is None:
            self.callbacks = []
        self.callbacks.append(made)
        return 0

    cdef bint append_first(self, Callback made):
        """Add a callback if nothing is known, without a lock: no other thread runs Python code meanwhile."""
        if self.parts or self.runs is not None or self.forks != forks:
            return False
        self.append(made)
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
        cdef list now = [], later = [], before = self.callbacks or []
        cdef Callback one
        cdef int64_t last = -1
        cdef bint ordered = True
        self.callbacks, self.newest = later, None
        for one in before:
            if first <= one._index < end:
                ordered = ordered and one._index >= last
                last = one._index
                now.append(one)
            else:
                later.append(one)
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
