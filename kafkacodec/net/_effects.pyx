# cython: embedsignature=False
# What services give their hosts, for each request: compiled, so that it is made and dropped fast.
cimport cython


@cython.final
@cython.freelist(64)
@cython.auto_pickle(False)
cdef class Reply:
    cdef readonly object to
    cdef readonly object response

    def __init__(self, to, response):
        self.to = to
        self.response = response

    def __iter__(self):
        return iter((self.to, self.response))

    def __repr__(self):
        return f"Reply(to={self.to!r}, response={self.response!r})"


@cython.final
@cython.freelist(64)
@cython.auto_pickle(False)
cdef class Append:
    cdef readonly object log
    cdef readonly object data
    cdef readonly object token
    cdef readonly object durability

    def __init__(self, log, data, token=None, durability="written"):
        self.log = log
        self.data = data
        self.token = token
        self.durability = durability

    def __repr__(self):
        return f"Append(log={self.log!r}, data={self.data!r}, token={self.token!r}, durability={self.durability!r})"


@cython.final
@cython.freelist(64)
@cython.auto_pickle(False)
cdef class Effect:
    cdef readonly object appends
    cdef readonly object replies
    cdef readonly object others
    cdef readonly object written
    cdef readonly object lost

    def __init__(self, appends=(), replies=(), others=(), written=(), lost=tuple):
        self.appends = appends
        self.replies = replies
        self.others = others
        self.written = written
        self.lost = lost

    def __bool__(self):
        return bool(self.appends or self.replies or self.others)

    def __repr__(self):
        return (f"Effect(appends={self.appends!r}, replies={self.replies!r}, others={self.others!r}, "
                f"written={self.written!r}, lost={self.lost!r})")
