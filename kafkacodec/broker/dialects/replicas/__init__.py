"""Replication of the line protocol between processes: the storage, the service, and what carries out its steps."""
