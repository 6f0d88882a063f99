"""What is in a segment file: its kind, the batches one after another, the messages of Kafka 0.7."""
