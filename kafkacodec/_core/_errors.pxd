# Converts a kc_error to a Python exception.
from kafkacodec._core cimport base as k


cdef inline object exception_from(const k.kc_error *error):
    """The exception for a kc_error, not raised."""
    from kafkacodec import errors as classes  # module-level imports of a .pxd are not executed

    what = error.what.decode() if error.what != NULL else "unknown error"
    if error.code == k.KC_NO_MEMORY:
        return MemoryError(what)
    if error.code == k.KC_BAD_CODEC:
        return classes.UnsupportedCodec(f"{what} {error.got}", position=error.position)
    if error.code == k.KC_CANNOT_ENCODE:
        return classes.EncodeError(f"{what}: got {error.got}, expected {error.want}")
    if error.code == k.KC_CRC_MISMATCH:
        reason = f"{what}: computed 0x{error.got & 0xffffffff:08x}, stored 0x{error.want & 0xffffffff:08x}"
        return classes.CrcMismatch(reason, position=error.position)
    if error.code == k.KC_BAD_MAGIC:
        return classes.UnsupportedMagic(f"{what} {error.got}", position=error.position)
    if error.code == k.KC_LIMIT:
        return classes.LimitExceeded(f"{what}: {error.got} exceeds {error.want}", position=error.position)
    if error.code == k.KC_TOTAL_LIMIT:
        return classes.LimitExceeded(f"{what}: {error.got} bytes exceed {error.want}", position=error.position)
    reason = what if error.got == 0 and error.want == 0 else f"{what}: got {error.got}, expected {error.want}"
    cls = classes.Truncated if error.code == k.KC_TRUNCATED else classes.CorruptRecord
    return cls(reason, position=error.position)


cdef inline int check(const k.kc_error *error) except -1:
    """Raise the exception for `error`, unless its code is KC_OK."""
    if error.code != k.KC_OK:
        raise exception_from(error)
    return 0
