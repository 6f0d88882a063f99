"""From spans of a log to its records: ranges of files, transactions, counting, following."""
