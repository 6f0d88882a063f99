"""Exports: Spark's tasks write the records of logs to Parquet files, which become visible all at once."""
