"""Rates of kafkacodec compared with other readers and writers of Kafka's records; `make bench`."""
