"""Kafka 0.6 and 0.7: the log and wire formats before 0.8."""

from kafkacodec.dialects.kafka07.message_set import (
    COLUMNS,
    DecodeOptions,
    decode,
    encode_messages,
    iter_columns,
    valid_bytes,
)

__all__ = ["COLUMNS", "DecodeOptions", "decode", "encode_messages", "iter_columns", "valid_bytes"]
