"""Finding what is damaged in segments and partitions."""
