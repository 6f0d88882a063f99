"""Spark: the format `kafkabroker`, live brokers as a source and a sink."""
