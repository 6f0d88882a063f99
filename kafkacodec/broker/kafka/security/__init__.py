"""The client of a connection, and its rights."""
