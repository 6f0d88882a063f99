"""Decompression of Kafka's payloads: C parses the frames, libraries decompress the blocks."""
from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE, PyBuffer_Release
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_FromObject
from libc.stdint cimport uint8_t, uint32_t, uintptr_t
from libc.string cimport memcpy, memset

import importlib.machinery
import os
from importlib.util import find_spec

from kafkacodec._core cimport frames as k
from kafkacodec._core._buffer cimport Block, backing_of, get_buffer, new_block
from kafkacodec._core._errors cimport check

from kafkacodec.errors import CorruptRecord, LimitExceeded, Truncated, UnsupportedCodec
from kafkacodec.lazy import imported_later

# Imported when there is something to decompress.
cramjam = imported_later("cramjam")
zstandard = imported_later("zstandard")
ctypes = imported_later("ctypes")

cdef int _GZIP_ONLY = 31  # zlib's "window bits" for data with a gzip header and trailer
cdef size_t _GZIP_LEAST = 18  # size of the smallest member in bytes
cdef size_t _GZIP_WINDOW = 256  # size of the first window of a member after the first, in bytes
cdef size_t _LIMIT_MOST = <size_t> 1 << 62

cdef size_t _BLOCK = 1 << 20  # size of a block for the content of several payloads, in bytes
cdef size_t _BLOCK_PAYLOADS = 4  # number of payloads in a block if they are large
cdef size_t _BLOCK_SLACK = 65 << 10  # bytes that a library may request beyond the content


cdef enum Codec:
    NONE, GZIP, SNAPPY, LZ4, ZSTD


cdef inline object readable(const uint8_t *data, size_t size):
    return PyMemoryView_FromMemory(<char *> data, <Py_ssize_t> size, PyBUF_READ)


cdef inline object writable(uint8_t *data, size_t size):
    return PyMemoryView_FromMemory(<char *> data, <Py_ssize_t> size, PyBUF_WRITE)


cdef int raise_panic(object raised) except -1:
    """cramjam panics if CPython cannot allocate an object; its PanicException is not an Exception."""
    if type(raised).__name__ == "PanicException":
        raise MemoryError("out of memory in the compression library") from None
    raise raised


cdef object too_large(size_t limit, size_t position):
    return LimitExceeded(f"decompressed data exceeds the limit of {limit} bytes", position=position)


# The C functions inside the wheels of lz4 and zstandard, called without the interpreter's lock: taking it twice a batch
# leaves threads waiting for each other longer than LZ4 takes for 16 KiB. NULL where a wheel does not export them; then,
# and for whatever they refuse, the libraries' Python functions are called.
ctypedef int (*lz4_decompress_t)(const uint8_t *, uint8_t *, int, int) noexcept nogil
ctypedef void *(*zstd_create_t)() noexcept nogil
ctypedef size_t (*zstd_free_t)(void *) noexcept nogil
ctypedef size_t (*zstd_decompress_t)(void *, uint8_t *, size_t, const uint8_t *, size_t) noexcept nogil
ctypedef unsigned (*zstd_is_error_t)(size_t) noexcept nogil

cdef lz4_decompress_t lz4_decompress = NULL
cdef zstd_create_t zstd_create = NULL
cdef zstd_free_t zstd_free = NULL
cdef zstd_decompress_t zstd_decompress = NULL
cdef zstd_is_error_t zstd_is_error = NULL


def _library(str module):
    """The shared library of an extension module, which need not be imported; None where there is none."""
    package, _, name = module.rpartition(".")
    spec = find_spec(package)
    for directory in spec.submodule_search_locations or () if spec is not None else ():
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = os.path.join(directory, name + suffix)
            if os.path.exists(path):
                return ctypes.CDLL(path)
    return None


cdef void *function_of(object library, str name) except? NULL:
    """An exported function; NULL where the library does not export it. dlsym() would bind to a new C library."""
    found = getattr(library, name, None)
    return NULL if found is None else <void *> <uintptr_t> ctypes.cast(found, ctypes.c_void_p).value


cdef bint functions_sought = False


cdef int find_functions() except -1:
    """Find what `run_directly` calls, once."""
    global functions_sought
    if not functions_sought:
        seek_functions()
        functions_sought = True
    return 0


cdef int seek_functions() except -1:
    global lz4_decompress, zstd_create, zstd_free, zstd_decompress, zstd_is_error
    cdef void *decompress
    lz4, zstd = _library("lz4.block._block"), _library("zstandard._cffi")
    lz4_decompress = <lz4_decompress_t> function_of(lz4, "LZ4_decompress_safe")
    zstd_create = <zstd_create_t> function_of(zstd, "ZSTD_createDCtx")
    zstd_free = <zstd_free_t> function_of(zstd, "ZSTD_freeDCtx")
    zstd_is_error = <zstd_is_error_t> function_of(zstd, "ZSTD_isError")
    decompress = function_of(zstd, "ZSTD_decompressDCtx")
    if zstd_create != NULL and zstd_free != NULL and zstd_is_error != NULL:
        zstd_decompress = <zstd_decompress_t> decompress
    return 0


def direct_codecs():
    """direct_codecs() -> set[int]"""
    find_functions()
    found = set()
    if lz4_decompress != NULL:
        found.add(<int> LZ4)
    if zstd_decompress != NULL:
        found.add(<int> ZSTD)
    return found


def _inflating():
    """A class that inflates, and its error: isal is twice as fast as zlib, but exists for x86-64 and AArch64 only."""
    try:
        from isal.isal_zlib import IsalError, decompressobj
    except ImportError:
        from zlib import error as IsalError, decompressobj
    return decompressobj, IsalError


cdef class Decompressor:
    """Decompresses payloads, reusing contexts and memory. Not thread-safe."""

    def __cinit__(self, *, bint direct=True):
        self._direct = direct

    def __dealloc__(self):
        if self.for_views:
            k.kc_backing_release(self.backing)
            k.kc_backing_release(self._block)
        else:
            k.kc_buffer_free(&self._scratch)
        if self._context != NULL:
            zstd_free(self._context)

    cdef void forget(self) noexcept:
        """Release the memory of the last content, which views keep if they need it."""
        self._held = None
        self.content = NULL
        self.size = 0
        if not self.for_views:
            k.kc_buffer_free(&self._scratch)

    cdef bint run_directly(self, int codec, const uint8_t *data, size_t size, int magic, size_t limit) noexcept nogil:
        """As `run`, without the interpreter. False where that cannot be, or went wrong: `run` says why."""
        cdef bint succeeded = False
        if not self._direct:
            return False
        self._scratch.size = 0
        if self.for_views:
            self._open_block()
        limit = min(limit, _LIMIT_MOST)
        if not functions_sought:
            with gil:
                find_functions()
        if codec == LZ4 and lz4_decompress != NULL:
            succeeded = self._lz4_directly(data, size, magic, limit)
        elif codec == ZSTD and zstd_decompress != NULL:
            succeeded = self._zstd_directly(data, size, limit)
        self.content = self._scratch.data
        self.size = self._scratch.size
        if succeeded and self.for_views:
            self._keep_block()
        return succeeded

    cdef bint _lz4_directly(self, const uint8_t *data, size_t size, int magic, size_t limit) noexcept nogil:
        cdef k.kc_lz4_frame frame
        cdef k.kc_lz4_block block
        cdef k.kc_error error
        cdef size_t room
        cdef uint8_t *out
        cdef int given
        if k.kc_lz4_open(&frame, data, size, magic == 0, &error) != k.KC_OK:
            return False
        while True:
            if k.kc_lz4_next(&frame, &block, &error) != k.KC_OK:
                return False
            if block.data == NULL:
                return True
            room = block.size if block.stored else min(frame.block_max, 255 * block.size)
            room = min(room, limit - self._scratch.size)
            if not self._make_room(room, &error):
                return False
            out = self._scratch.data + self._scratch.size
            if not block.stored:
                given = lz4_decompress(block.data, out, <int> block.size, <int> room)
            elif block.size <= room:
                memcpy(out, block.data, block.size)
                given = <int> block.size
            else:
                given = -1
            if given < 0:
                return False
            self._scratch.size += <size_t> given

    cdef bint _zstd_directly(self, const uint8_t *data, size_t size, size_t limit) noexcept nogil:
        cdef k.kc_zstd_frame frame
        cdef k.kc_error error
        cdef size_t position = 0, room, given
        if self._context == NULL:
            self._context = zstd_create()
        while position < size:
            if self._context == NULL or k.kc_zstd_next(data, size, &position, &frame, &error) != k.KC_OK:
                return False
            if frame.most_content == 0:
                continue
            room = min(frame.most_content, limit - self._scratch.size)
            if not self._make_room(room, &error):
                return False
            given = zstd_decompress(
                self._context, self._scratch.data + self._scratch.size, room, frame.data, frame.size
            )
            if zstd_is_error(given):
                return False
            self._scratch.size += given
        return True

    def decompress(self, int codec, data, *, int magic=2, size_t limit):
        """decompress(codec: int, data: Buffer, *, magic: int = 2, limit: int) -> bytes"""
        cdef Py_buffer view
        get_buffer(data, &view)
        try:
            self.run(codec, <const uint8_t *> view.buf, <size_t> view.len, magic, limit)
            if self._held is not None:
                return self._held
            return PyBytes_FromStringAndSize(<const char *> self.content, <Py_ssize_t> self.size)
        finally:
            self._held = None
            self.content = NULL
            self.size = 0
            PyBuffer_Release(&view)

    cdef int run(self, int codec, const uint8_t *data, size_t size, int magic, size_t limit) except -1:
        """Decompress at most `limit` bytes into `content` and `size`."""
        cdef bint succeeded
        self._held = None
        with nogil:
            succeeded = self.run_directly(codec, data, size, magic, limit)
        if not succeeded:
            try:
                self.run_library(codec, data, size, magic, limit)
            except MemoryError:  # the libraries allocate by themselves: the pool may keep what they need
                if not k.kc_trim():
                    raise
                self._held = None
                self.run_library(codec, data, size, magic, limit)
        return 0

    cdef int run_library(self, int codec, const uint8_t *data, size_t size, int magic, size_t limit) except -1:
        self._scratch.size = 0
        if self.for_views:
            self._open_block()
        self.content = NULL
        self.size = 0
        limit = min(limit, _LIMIT_MOST)
        if codec == LZ4:
            self._lz4(data, size, magic, limit)
        elif codec == ZSTD:
            self._zstd_frames(data, size, limit)
        elif codec == SNAPPY:
            self._snappy(data, size, limit)
        elif codec == GZIP:
            self._gzip(data, size, limit)
        else:
            raise UnsupportedCodec(f"unknown compression codec {codec}")
        if self._held is None:
            self.content = self._scratch.data
            self.size = self._scratch.size
        if self.for_views:
            self._keep()
        return 0

    cdef void _open_block(self) noexcept nogil:
        """Use the rest of the block as scratch, or no memory if the rest is probably too small."""
        cdef k.kc_backing *block = self._block
        k.kc_backing_release(self.backing)
        self.backing = NULL
        if block != NULL and block.capacity - block.size < self._expected + self._expected // 4 + _BLOCK_SLACK:
            k.kc_backing_release(block)
            self._block = block = NULL
        self._scratch.data = NULL if block == NULL else block.owned + block.size
        self._scratch.capacity = 0 if block == NULL else block.capacity - block.size

    cdef bint _move(self, size_t size, k.kc_error *error) noexcept nogil:
        """Switch to a block with room for `size` more bytes. Tables that refer to the old block keep it alive."""
        cdef size_t least = self._scratch.size + size
        cdef k.kc_backing *block
        block = k.kc_backing_new(least, max(_BLOCK, _BLOCK_PAYLOADS * max(least, self._expected)), self.budget, error)
        if block == NULL:
            return False
        if self._scratch.size:
            memcpy(block.owned, self._scratch.data, self._scratch.size)
        k.kc_backing_release(self._block)
        self._block = block
        self._scratch.data = block.owned
        self._scratch.capacity = block.capacity
        return True

    cdef void _keep_block(self) noexcept nogil:
        if self._block != NULL:
            self._block.size += self.size
            self.backing = self._block
            k.kc_backing_retain(self.backing)
        self._expected = self.size

    cdef int _keep(self) except -1:
        cdef k.kc_error error
        error.code = k.KC_OK
        if self._held is not None:
            self.backing = backing_of(self._held, self.content, self.size, self.budget, &error)
            if self.backing == NULL:
                self._refuse(&error)
            self._expected = self.size
        else:
            self._keep_block()
        return 0

    cdef int _refuse(self, const k.kc_error *error) except -1:
        self.exhausted = error.code == k.KC_TOTAL_LIMIT
        check(error)

    cdef int _add(self, bytes part) except -1:
        """Add a part of the result: the first one is held without a copy, further ones are joined in `_scratch`."""
        if len(part) == 0:
            return 0
        if self.size == 0:
            self._held = part
            self.content = <const uint8_t *> PyBytes_AS_STRING(part)
            self.size = <size_t> len(part)
            return 0
        if self._held is not None:
            self._append(self.content, self.size)
            self._held = None
        self._append(<const uint8_t *> PyBytes_AS_STRING(part), <size_t> len(part))
        self.size = self._scratch.size
        return 0

    cdef int _append(self, const uint8_t *data, size_t size) except -1:
        self._reserve(size)
        memcpy(self._scratch.data + self._scratch.size, data, size)
        self._scratch.size += size
        return 0

    cdef bint _make_room(self, size_t size, k.kc_error *error) noexcept nogil:
        """Room for `size` more bytes, never at NULL: some libraries crash for that, even for no bytes."""
        if not self.for_views:
            return k.kc_buffer_reserve(&self._scratch, size + 1, error) == k.KC_OK
        return size + 1 <= self._scratch.capacity - self._scratch.size or self._move(size + 1, error)

    cdef int _reserve(self, size_t size) except -1:
        cdef k.kc_error error
        error.code = k.KC_OK
        if not self._make_room(size, &error):
            self._refuse(&error)
        return 0

    cdef int _gzip(self, const uint8_t *data, size_t size, size_t limit) except -1:
        """All members; bytes after the last one are ignored, as in Java."""
        cdef size_t position = self._gzip_member(data, size, 0, size, limit)
        while size - position >= _GZIP_LEAST and data[position] == 0x1f and data[position + 1] == 0x8b:
            position = self._gzip_member(data, size, position, _GZIP_WINDOW, limit)
        return 0

    cdef size_t _gzip_member(
        self, const uint8_t *data, size_t size, size_t start, size_t window, size_t limit
    ) except? 0:
        """Adds the content of the member at `start`; returns the position of its end.

        The library copies the input that follows the end of the member, so passing all the data for each of many
        members would take quadratic time: it gets a window of the data, then the next, twice as large.
        """
        cdef size_t given = start, piece
        cdef bytes part
        inflate, inflate_error = _inflating()
        member = inflate(_GZIP_ONLY)
        while not member.eof:
            if given == size:
                raise Truncated("truncated gzip member", position=size)
            piece = min(window, size - given)
            try:
                part = member.decompress(readable(data + given, piece), limit - self.size + 1)
            except inflate_error as fault:
                raise CorruptRecord(f"damaged gzip data: {fault}", position=start) from None
            if <size_t> len(part) > limit - self.size:
                raise too_large(limit, start)
            self._add(part)
            given += piece
            window *= 2
        return given - <size_t> len(member.unused_data)

    cdef int _snappy(self, const uint8_t *data, size_t size, size_t limit) except -1:
        cdef k.kc_snappy_frame frame
        cdef k.kc_snappy_block block
        cdef k.kc_error error
        error.code = k.KC_OK
        if k.kc_snappy_open(&frame, data, size, &error) != k.KC_OK:
            check(&error)
        while True:
            if k.kc_snappy_next(&frame, &block, &error) != k.KC_OK:
                check(&error)
            if block.data == NULL:
                return 0
            if block.content_size > limit - self._scratch.size:
                raise too_large(limit, block.data - data)
            self._reserve(block.content_size)
            out = writable(self._scratch.data + self._scratch.size, block.content_size)
            try:
                given = cramjam.snappy.decompress_raw_into(readable(block.data, block.size), out)
            except cramjam.DecompressionError as fault:
                raise CorruptRecord(f"damaged Snappy block: {fault}", position=block.data - data) from None
            except BaseException as raised:
                raise_panic(raised)
            if given != block.content_size:
                raise CorruptRecord("a Snappy block changed while it was read", position=block.data - data)
            self._scratch.size += block.content_size

    cdef int _lz4(self, const uint8_t *data, size_t size, int magic, size_t limit) except -1:
        cdef k.kc_lz4_frame frame
        cdef k.kc_lz4_block block
        cdef k.kc_error error
        error.code = k.KC_OK
        if k.kc_lz4_open(&frame, data, size, magic == 0, &error) != k.KC_OK:
            check(&error)
        while True:
            if k.kc_lz4_next(&frame, &block, &error) != k.KC_OK:
                check(&error)
            if block.data == NULL:
                return 0
            if block.stored:
                if block.size > limit - self._scratch.size:
                    raise too_large(limit, block.data - data)
                self._append(block.data, block.size)
            else:
                self._lz4_block(&block, frame.block_max, limit, block.data - data)

    cdef int _lz4_block(self, const k.kc_lz4_block *block, size_t block_max, size_t limit, size_t position) except -1:
        """Decompress a block of unknown content size: at most the frame's block size and 255 times its bytes."""
        cdef size_t most = min(block_max, 255 * block.size)
        cdef size_t room = min(most, limit - self._scratch.size)
        self._reserve(room)
        out = writable(self._scratch.data + self._scratch.size, room)
        try:
            self._scratch.size += <size_t> cramjam.lz4.decompress_block_into(readable(block.data, block.size), out, room)
        except cramjam.DecompressionError:
            if room < most:
                raise too_large(limit, position) from None
            raise CorruptRecord("damaged LZ4 block", position=position) from None
        except BaseException as raised:
            raise_panic(raised)
        return 0

    cdef int _zstd_frames(self, const uint8_t *data, size_t size, size_t limit) except -1:
        """All frames, up to the last byte."""
        cdef size_t position = 0
        cdef size_t room
        cdef k.kc_zstd_frame frame
        cdef k.kc_error error
        error.code = k.KC_OK
        while position < size:
            if k.kc_zstd_next(data, size, &position, &frame, &error) != k.KC_OK:
                check(&error)
            if frame.most_content == 0:
                continue
            room = min(frame.most_content, limit - self.size)
            if frame.says_size and room < frame.most_content:
                raise too_large(limit, frame.data - data)
            if self._zstd is None:
                self._zstd = zstandard.ZstdDecompressor()
            try:
                part = self._zstd.decompress(readable(frame.data, frame.size), max_output_size=room)
            except zstandard.ZstdError as fault:
                if room < frame.most_content:
                    raise too_large(limit, frame.data - data) from None
                raise CorruptRecord(f"damaged zstd data: {fault}", position=frame.data - data) from None
            self._add(part)
        return 0


cdef size_t _XERIAL_BLOCK = 32 << 10


cdef inline size_t snappy_most(size_t size):
    """The maximum compressed size of a block of `size` bytes, by the library's formula."""
    return 32 + size + size // 6


def compress_snappy(data):
    """compress_snappy(data: Buffer) -> bytes"""
    cdef Py_buffer view
    cdef k.kc_buffer packed = k.kc_buffer(NULL, 0, 0)
    cdef k.kc_error error
    cdef size_t at = 0, piece, size
    error.code = k.KC_OK
    get_buffer(data, &view)
    try:
        size = <size_t> view.len
        if k.kc_buffer_reserve(&packed, k.KC_XERIAL_HEADER_BYTES + snappy_most(size) + (size // _XERIAL_BLOCK + 1) * 40,
                               &error):
            check(&error)
        k.kc_xerial_header(packed.data)
        packed.size = k.KC_XERIAL_HEADER_BYTES
        while at < <size_t> view.len:
            piece = min(_XERIAL_BLOCK, <size_t> view.len - at)
            target = writable(packed.data + packed.size + 4, snappy_most(piece))
            try:
                size = cramjam.snappy.compress_raw_into(readable(<const uint8_t *> view.buf + at, piece), target)
            except BaseException as raised:
                raise_panic(raised)
            k.kc_store_u32(packed.data + packed.size, <uint32_t> size)
            packed.size += 4 + size
            at += piece
        return PyBytes_FromStringAndSize(<const char *> packed.data, <Py_ssize_t> packed.size)
    finally:
        k.kc_buffer_free(&packed)
        PyBuffer_Release(&view)


def with_old_lz4_checksum(bytes frame):
    """with_old_lz4_checksum(frame: bytes) -> bytes"""
    if frame is None or len(frame) < 7 or len(frame) < 5 + k.KC_LZ4_DESCRIPTOR_BYTES(frame[4] & 0x08):
        raise ValueError("not an LZ4 frame")
    cdef bytes out = PyBytes_FromStringAndSize(PyBytes_AS_STRING(frame), len(frame))
    cdef uint8_t *data = <uint8_t *> PyBytes_AS_STRING(out)
    cdef bint has_content_size = data[4] & 0x08
    data[4 + k.KC_LZ4_DESCRIPTOR_BYTES(has_content_size)] = k.kc_lz4_old_checksum(data, has_content_size)
    return out


cdef enum:
    LZ4_MAX_64_KIB = 4      # LZ4F_max64KB
    LZ4_MAX_256_KIB = 5
    LZ4_INDEPENDENT = 1     # LZ4F_blockIndependent
    LONG_BYTES = 16384      # that take longer to compress than to give the interpreter's lock away

# The public functions of LZ4's frames (lz4frame.h, the same since 1.8.2).
ctypedef size_t (*lz4_bound_t)(size_t, const lz4_preferences *) noexcept nogil
ctypedef size_t (*lz4_compress_t)(uint8_t *, size_t, const uint8_t *, size_t, const lz4_preferences *) noexcept nogil
ctypedef unsigned (*lz4_is_error_t)(size_t) noexcept nogil


cdef lz4_bound_t lz4_bound = NULL
cdef lz4_compress_t lz4_compress = NULL
cdef lz4_is_error_t lz4_is_error = NULL
cdef bint frames_sought = False


cdef int find_frames() except -1:
    """Find the functions of frames, once; they are in another library than that of blocks."""
    global lz4_bound, lz4_compress, lz4_is_error, frames_sought
    if not frames_sought:
        library = _library("lz4.frame._frame")
        lz4_bound = <lz4_bound_t> function_of(library, "LZ4F_compressFrameBound")
        lz4_compress = <lz4_compress_t> function_of(library, "LZ4F_compressFrame")
        lz4_is_error = <lz4_is_error_t> function_of(library, "LZ4F_isError")
        frames_sought = True
    return 0


cdef class Lz4Frames:
    def __init__(self, int level):
        find_frames()
        memset(&self.preferences, 0, sizeof(self.preferences))
        self.preferences.block_mode = LZ4_INDEPENDENT
        self.preferences.level = level

    @property
    def is_there(self):
        return lz4_bound != NULL and lz4_compress != NULL and lz4_is_error != NULL

    def __call__(self, data):
        cdef Py_buffer view
        get_buffer(data, &view)
        try:
            return PyMemoryView_FromObject(self.frame_after(0, <const uint8_t *> view.buf, <size_t> view.len))
        finally:
            PyBuffer_Release(&view)

    cdef Block frame_after(self, size_t head, const uint8_t *data, size_t size):
        """The frame of these bytes in memory that begins with `head` bytes for something else."""
        cdef Block made
        cdef lz4_preferences preferences = self.preferences
        cdef size_t room
        if not self.is_there:
            raise RuntimeError("the package lz4 does not export its functions")
        # Readers reserve a whole block; more than one of 64 KiB would be compressed worse, and read more slowly.
        preferences.block_size = LZ4_MAX_64_KIB if size <= 1 << 16 else LZ4_MAX_256_KIB
        room = lz4_bound(size, &preferences)
        made = new_block(head + room)
        if size < LONG_BYTES:
            size = lz4_compress(made.buffer.data + head, room, data, size, &preferences)
        else:
            with nogil:
                size = lz4_compress(made.buffer.data + head, room, data, size, &preferences)
        if lz4_is_error(size):
            raise MemoryError("LZ4 cannot compress the records")
        made.buffer.size = head + size
        return made
