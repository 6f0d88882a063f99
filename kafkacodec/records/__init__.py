"""Record sets: decoding, encoding, scanning and compression."""
