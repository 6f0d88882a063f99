"""The format `kafkalog` as a source: options, plans, tasks, streams, views."""
