"""Clients of Kafka brokers."""
