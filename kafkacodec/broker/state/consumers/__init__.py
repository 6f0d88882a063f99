"""Groups of the consumer protocol: members, epochs and targets, beside members of the classic protocol (KIP-848)."""
