"""Consuming without I/O: positions, fetching, and what was fetched as columns and records."""
