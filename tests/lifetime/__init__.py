"""Every entry point with every kind of buffer and every way in which a call can end: see matrix.py."""
