"""Segments as Aiven's plugin for tiered storage (KIP-405) stores them: chunks, compressed, encrypted, and manifests.

Paths of such segments are opened, read and listed by `kafkacodec.log.storage` like any others; `kafkacodec.log.uploads`
lists what a directory has, and which of it is read.
"""
