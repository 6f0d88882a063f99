"""Checks that batches and segments follow one another, and restoration of wrong offsets."""
