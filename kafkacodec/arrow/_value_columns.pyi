class ByteColumn:
    """A growing column of bytes, for values that come as Python objects."""

class IntColumn:
    """A growing column of 64-bit integers; None becomes `null_value`."""
