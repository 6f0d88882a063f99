"""A broker: Kafka's protocol over files that Kafka can read."""
