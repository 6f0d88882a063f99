"""Other protocols than Kafka's, over the topics of a broker: a service and a codec for each."""
