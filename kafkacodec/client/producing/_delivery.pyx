# cython: embedsignature=False
# What becomes of records given to a producer: an object for each record, so that it is made and dropped fast.
cimport cython
from libc.stdint cimport int64_t

from kafkacodec.client.producing._callbacks cimport Callback, Callbacks, callback

import asyncio
from operator import attrgetter
from types import GenericAlias

from kafkacodec.client.checks import seconds
from kafkacodec.client.core.foreign_names import Elsewhere
from kafkacodec.client.producing.outcome import OffsetRange, RecordMetadata, TableMetadata, refuse_in, tell


cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030E0000
    #define is_dropped(delivery) PyUnstable_Object_IsUniqueReferencedTemporary((PyObject *) (delivery))
    #else
    #define is_dropped(delivery) (Py_REFCNT(delivery) == 1)
    #endif
    """
    # Whether only the call of one of its methods has a delivery: `send(...).add_done_callback(function)`
    bint is_dropped(Awaitable delivery)


@cython.auto_pickle(False)
cdef class Awaitable(Callback):
    __class_getitem__ = classmethod(GenericAlias)

    # The futures of other clients have these.
    get = Elsewhere("a delivery", "get", "result(timeout), in seconds")
    exception = Elsewhere("a delivery", "exception", "error, which is None if there is none")
    succeeded = Elsewhere("a delivery", "succeeded", "done(), and error")
    failed = Elsewhere("a delivery", "failed", "error, which is None if there is none")
    add_callback = Elsewhere("a delivery", "add_callback", "add_done_callback(f)")
    add_errback = Elsewhere("a delivery", "add_errback", "add_done_callback(f), and error in f")

    def __dir__(self):
        return [name for name in object.__dir__(self) if hasattr(self, name)]

    def __init__(self, outcome, int64_t index=0, int64_t timestamp=-1):
        self._outcome = outcome
        self._index = index
        self._timestamp = timestamp

    def done(self):
        """Whether the outcome is known."""
        return self._outcome._known(self._index)

    def _result(self):
        raise NotImplementedError

    def result(self, timeout=None):
        """Wait for the broker's acknowledgement. In a coroutine, await the delivery instead.

        Args:
            timeout: the limit in seconds; None waits as long as ``delivery_timeout_ms`` allows.

        Raises:
            TimeoutError: the outcome is not known in time.
            LocalProtocolError: called in the client's own event loop, from a coroutine or callback.
            ClientClosed: the outcome is unknown, and this process was forked from the one that sent the record.
            BrokerError, DeadlineExceeded, ConnectionFailed, ClientClosed, …: the record was not delivered.
        """
        if not self.done():
            refuse_in(self._outcome.loop)
            if not self._outcome.wait(self._index, seconds("timeout", timeout)):
                raise TimeoutError(f"not acknowledged within {timeout} s")
        return self._result()

    def add_done_callback(self, function):
        """Call ``function(delivery)`` once the outcome is known, or at once if it already is.

        Callbacks of a batch are called in the order of its records, in the thread of the client's event loop. Their
        exceptions are logged. SystemExit and KeyboardInterrupt end the event loop of an asyncio client, after the other
        callbacks; a blocking client logs them. A callback that is called at once raises them to the caller.

        Raises:
            ClientClosed: the outcome is unknown, and this process was forked from the one that sent the record.
        """
        cdef Callbacks outcome = self._outcome
        cdef Callback made
        if outcome is None:
            raise TypeError("the delivery has no outcome: a producer makes it")
        if is_dropped(self) and self.function is None and type(self) is Delivery and not isinstance(function, Callback):
            if outcome.append_function(function, self._index, self._timestamp, delivery):
                return
        if self.function is None:
            self.function, made = function, self
        else:
            made = callback(function, self, self._index)
        if not outcome.append_first(made) and outcome.when(self._index, made):
            self.look()
            made.run()

    cdef int look(self) except -1:
        """Note that the application sees the outcome."""
        cdef Callbacks outcome = self._outcome
        if outcome.unseen is not None:
            outcome.unseen.look(self._index)
        return 0

    cdef int run(self) except -1:
        return self.call(self)

    def __await__(self):
        if not self.done():
            loop = asyncio.get_running_loop()
            known = loop.create_future()
            if not self._outcome.when(self._index, lambda: tell(loop, known)):
                yield from known
        return self._result()


cdef Callback delivery(outcome, int64_t index, int64_t timestamp):
    cdef Delivery made = Delivery.__new__(Delivery)
    made._outcome, made._index, made._timestamp = outcome, index, timestamp
    return made


cdef object offset_in(part, int64_t index):
    return part.offset + index - part.first if part.offset >= 0 else -1


cdef object time_in(part, int64_t timestamp):
    return part.time if part.time >= 0 else timestamp


@cython.auto_pickle(False)
cdef class Delivery(Awaitable):
    """A record given to a producer. Also awaitable.

    Deliveries share the state of their batch, so keeping many costs little.
    """

    def done(self):
        """Whether the outcome is known."""
        return self._outcome.find(self._index) is not None

    def _result(self):
        part = self._outcome.find(self._index)
        if part.error is not None:
            self.look()
            raise part.error.with_traceback(None)  # a traceback would keep the frames of every call
        place = (part.topic, part.partition, offset_in(part, self._index), time_in(part, self._timestamp))
        return tuple.__new__(RecordMetadata, place)     # what the class does, without its call

    @property
    def error(self):
        """Why the record was not delivered; None if it was, or while the outcome is unknown."""
        part = self._outcome.find(self._index)
        if part is None:
            return None
        self.look()
        return part.error

    @property
    def offset(self):
        """The record's offset; None while it is unknown, -1 if the broker does not report it."""
        part = self._outcome.find(self._index)
        return None if part is None or part.error is not None else offset_in(part, self._index)

    @property
    def timestamp(self):
        """The record's timestamp in ms since 1970, or the broker's once the broker is known to have set it."""
        part = self._outcome.find(self._index)
        return self._timestamp if part is None else time_in(part, self._timestamp)

    def __repr__(self):
        part = self._outcome.find(self._index)
        if part is None:
            return "<Delivery: pending>"
        if part.error is not None:
            return f"<Delivery: failed, {part.error!r}>"
        return f"<Delivery: {part.topic}-{part.partition}, offset {offset_in(part, self._index)}>"


@cython.auto_pickle(False)
cdef class TableDelivery(Awaitable):
    """The rows of a table given to a producer; done when all rows are. Also awaitable."""

    def _result(self):
        if self._outcome.failure is not None:
            self.look()
            raise self._outcome.failure.with_traceback(None)
        offsets = {}
        for part in sorted(self._outcome.parts, key=attrgetter("end")):
            if part.end > part.first:
                ranges = offsets.setdefault((part.topic, part.partition), [])
                ranges.append(OffsetRange(part.offset, part.end - part.first))
        return TableMetadata(self._outcome.resolved, offsets)

    @property
    def error(self):
        """The first reason why rows were not delivered; None if all were, or while none has failed."""
        self._outcome.observe()
        self.look()
        return self._outcome.failure

    def __repr__(self):
        from kafkacodec.shown import counted, repr_of

        self._outcome.observe()
        return repr_of(self, f"{counted(self._outcome.resolved, 'row')} known", "done" if self.done() else "pending")
