"""Avro values to columns."""
