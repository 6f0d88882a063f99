"""The message classes of the Kafka protocol."""
