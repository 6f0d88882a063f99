"""Several pretended brokers: who runs, who leads, who coordinates, and what the others answer."""
