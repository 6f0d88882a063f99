"""The contents of a segment file: its kind, its batches in order, messages of Kafka 0.7."""
