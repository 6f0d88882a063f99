"""Frames, headers, version negotiation and the sans-I/O connection."""
