"""Directories: partitions, topics, whole data directories, and replicas read as one log."""
