# Numbers that a client counts, several for each request and batch.
from libc.math cimport frexp, ldexp

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


cdef int class_of(double value) noexcept:
    cdef int exponent
    cdef double fraction = frexp(value, &exponent)      # 0.5 <= fraction < 1
    if exponent < LEAST or value <= 0:
        return (LEAST - 1) * IN_OCTAVE
    return min(exponent, <int> MOST) * IN_OCTAVE + <int> (fraction * 2 * IN_OCTAVE) - IN_OCTAVE


cdef double upper(int number) noexcept:
    cdef int eighth = number & (IN_OCTAVE - 1)
    return ldexp((eighth + IN_OCTAVE + 1) / <double> (2 * IN_OCTAVE), (number - eighth) // IN_OCTAVE)
