"""Functions of columns and data frames, also by name in SQL."""
