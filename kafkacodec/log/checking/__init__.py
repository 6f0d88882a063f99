"""Finding what is damaged, and saving what is intact."""
