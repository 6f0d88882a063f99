"""Spark sessions: with the formats registered, for commands, for the demo."""
