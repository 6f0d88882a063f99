"""Log files on disk: segments, partitions and log directories, with their indexes."""
