"""The format `kafkalog` as a target: tasks write to staging directories, the driver publishes."""
