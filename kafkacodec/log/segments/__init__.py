"""Segment files: their kinds, their batches, look-up by offset and time."""
