"""Analysis of logs: statistics from headers and records, other codecs, differences.

`kafkacodec.log` exports its public names.
"""
