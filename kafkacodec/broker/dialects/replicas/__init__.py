"""Replication of the line protocol between processes: the storage, the service, and the driver of its steps."""
