class ByteColumn:
    """A column of bytes to which Python objects are appended."""

class IntColumn:
    """A column of 64-bit integers to which Python objects are appended; None becomes `null_value`."""
