"""Writing segments and partitions as a broker expects them; saving what is intact in damaged ones."""
