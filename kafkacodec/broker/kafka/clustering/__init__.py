"""Several pretended brokers: which run, lead and coordinate, and the answers of the others."""
