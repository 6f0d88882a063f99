"""Every entry point with every kind of buffer, in every way that a call can end: see matrix.py."""
