"""What brokers keep in logs: groups, committed offsets, schemas, the metadata of a cluster."""
