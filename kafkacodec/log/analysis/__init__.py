"""What logs hold, added up and compared: statistics from headers and records, other codecs, differences.

Its public names are those of `kafkacodec.log`.
"""
