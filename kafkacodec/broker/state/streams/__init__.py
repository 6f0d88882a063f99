"""Streams groups: topologies, tasks and members (KIP-1071)."""
