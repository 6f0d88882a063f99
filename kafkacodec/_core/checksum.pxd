# csrc/checksum as Cython sees it, a section per header; with all of base.pxd.
from libc.stdint cimport uint8_t, uint32_t

from kafkacodec._core.base cimport *


cdef extern from "checksum/kc_crc32c.h" nogil:
    uint32_t kc_crc32c(uint32_t crc, const uint8_t *data, size_t size)
    const char *kc_crc32c_kernel()


cdef extern from "checksum/kc_crc32.h" nogil:
    uint32_t kc_crc32(uint32_t crc, const uint8_t *data, size_t size)
    const char *kc_crc32_kernel()
