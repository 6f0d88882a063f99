"""The rows that commands print."""
