# Checks Avro values against a schema, and copies the payloads of rows next to one another, without the GIL.
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp, memcpy

from kafkacodec._core cimport values as k
from kafkacodec.values._rows cimport in_order


cdef int32_t MOST_NODES = 1 << 24


cdef class Checker:
    """A schema as the nodes of kc_avro.h."""
    cdef bytes nodes
    cdef k.kc_avro_schema schema

    def __init__(self, bytes nodes not None):
        cdef size_t size = len(nodes)
        self.nodes = nodes
        self.schema.nodes = <const k.kc_avro_node *> <const char *> nodes
        self.schema.count = <int32_t> min(size // sizeof(k.kc_avro_node), <size_t> MOST_NODES)
        if size != self.schema.count * sizeof(k.kc_avro_node) or not k.kc_avro_schema_valid(&self.schema):
            self.schema.count = 0
            raise ValueError("the nodes are not a tree")

    def check(self, const uint8_t[::1] data not None, const int64_t[::1] ends not None, int64_t start, int64_t budget):
        cdef k.kc_avro_fault fault
        cdef int64_t row, rows = ends.shape[0]
        cdef const uint8_t *first = &data[0] if data.shape[0] else <const uint8_t *> self.schema.nodes
        if self.schema.count == 0 or start < 0 or not in_order(ends, data.shape[0]):
            raise ValueError("the ends of rows are out of order or after the data")
        if start >= rows:
            return rows, budget, None
        with nogil:
            row = k.kc_avro_check(&self.schema, first, &ends[0], start, rows, &budget, &fault)
        if row == rows:
            return rows, budget, None
        return row, budget, (fault.what.decode() if fault.what else "", fault.position, fault.node, fault.got, fault.want)


def join(const uint8_t[::1] data not None, const int64_t[::1] starts not None, const int64_t[::1] sizes not None,
         uint8_t[::1] out not None):
    cdef int64_t i, at = 0, room = out.shape[0], size = data.shape[0]
    if starts.shape[0] != sizes.shape[0]:
        raise ValueError("as many starts as sizes are needed")
    for i in range(starts.shape[0]):
        if starts[i] < 0 or sizes[i] < 0 or starts[i] > size or sizes[i] > size - starts[i] or sizes[i] > room - at:
            raise ValueError(f"row {i} is outside the data")
        if sizes[i]:
            memcpy(&out[at], &data[starts[i]], sizes[i])
            at += sizes[i]
    return at


def begin_alike(const uint8_t[::1] data not None, const int64_t[::1] starts not None,
                const int64_t[::1] sizes not None, int64_t count):
    cdef int64_t i, rows = starts.shape[0], size = data.shape[0]
    if rows == 0 or sizes.shape[0] != rows or count < 1:
        return False
    for i in range(rows):
        if starts[i] < 0 or sizes[i] < count or starts[i] > size or count > size - starts[i]:
            return False
        if memcmp(&data[starts[i]], &data[starts[0]], count):
            return False
    return True
