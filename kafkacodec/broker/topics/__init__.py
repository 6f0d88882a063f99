"""What a leader knows of its partitions: logs, producers, who waits. No messages of a protocol."""
