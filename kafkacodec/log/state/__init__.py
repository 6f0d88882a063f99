"""The state that brokers keep in logs: groups, committed offsets, schemas, the metadata of a cluster."""
