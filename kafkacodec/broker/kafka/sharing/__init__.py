"""Share groups (KIP-932): share sessions, deliveries and acknowledgements, positions of groups."""
