"""JSON values to columns."""
