"""Writing segments and partitions as a broker expects them."""
