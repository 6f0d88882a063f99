"""From a part of a segment to its records: look-up by offset and time, ranges, transactions, counting."""
