"""The `kafkacodec` command."""
