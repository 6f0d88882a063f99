# Numbers that a client counts, several for each request and batch.
from libc.math cimport frexp, ldexp
from libc.stdint cimport int64_t

cdef enum:
    IN_OCTAVE = 8       # classes of a power of two
    LEAST = -9          # the binary exponents with classes of their own
    MOST = 41


cdef class Counter:
    def __init__(self):
        self.value = 0

    cpdef add(self, amount=1):
        self.value += amount


cdef class Histogram:
    def __init__(self):
        self.sum = self.max = 0
        self._classes = {}

    cpdef add(self, value):
        cdef int number = class_of(value)
        self.count += 1
        self.sum += value
        if value > self.max:
            self.max = value
        self._classes[number] = self._classes.get(number, 0) + 1

    def quantile(self, double part):
        cdef double rank = part * self.count
        cdef long long seen = 0
        for number, count in sorted(self._classes.copy().items()):
            seen += count
            if seen >= rank:
                return min(upper(number), self.max)
        return self.max


cdef class RequestCounts:
    def __init__(self, Counter requests not None, Histogram request_ms not None, Counter bytes_out not None,
                 Counter bytes_in not None):
        self.requests, self.request_ms, self.bytes_out, self.bytes_in = requests, request_ms, bytes_out, bytes_in

    cpdef add(self, double ms, int64_t bytes_out, int64_t bytes_in):
        self.requests.add()
        self.request_ms.add(ms)
        self.bytes_out.add(bytes_out)
        self.bytes_in.add(bytes_in)


cdef class BatchCounts:
    def __init__(self, Counter batches not None, Counter records not None, Counter bytes not None,
                 Histogram batch_records not None, Histogram batch_bytes not None):
        self.batches, self.records, self.bytes = batches, records, bytes
        self.batch_records, self.batch_bytes = batch_records, batch_bytes

    cpdef add(self, int64_t records, int64_t bytes):
        self.batches.add()
        self.records.add(records)
        self.bytes.add(bytes)
        self.batch_records.add(records)
        self.batch_bytes.add(bytes)


cdef int class_of(double value) noexcept:
    cdef int exponent
    cdef double fraction = frexp(value, &exponent)      # 0.5 <= fraction < 1
    if exponent < LEAST or value <= 0:
        return (LEAST - 1) * IN_OCTAVE
    return min(exponent, <int> MOST) * IN_OCTAVE + <int> (fraction * 2 * IN_OCTAVE) - IN_OCTAVE


cdef double upper(int number) noexcept:
    cdef int eighth = number & (IN_OCTAVE - 1)
    return ldexp((eighth + IN_OCTAVE + 1) / <double> (2 * IN_OCTAVE), (number - eighth) // IN_OCTAVE)
