"""Spark: data source, functions and helpers built on the columnar decoder."""
