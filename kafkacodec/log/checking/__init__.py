"""Finding damage in segments and partitions."""
