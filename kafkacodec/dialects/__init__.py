"""Protocols besides the Kafka protocol of today: 0.6/0.7, the client rewrite, the line protocol V1."""
