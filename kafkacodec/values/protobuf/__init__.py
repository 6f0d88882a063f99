"""Protobuf values to columns."""
