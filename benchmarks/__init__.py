"""Rates of kafkacodec beside other readers and writers of Kafka's records; `make bench`."""
