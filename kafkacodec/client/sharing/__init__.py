"""Consumers of share groups (KIP-932): the records they are given, and what they say about them."""
