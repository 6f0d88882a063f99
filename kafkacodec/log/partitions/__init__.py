"""Segments, partitions, topics and data directories; planning what is read of them; replicas read as one log."""
