"""The Kafka protocol of the broker: one file a subject, one function an API."""
