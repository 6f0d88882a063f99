"""Writing segments and partitions as a broker expects them; recovery of damaged ones."""
