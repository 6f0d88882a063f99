"""A leader's state of its partitions: logs, producers, waiting requests. No messages of a protocol."""
