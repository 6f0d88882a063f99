"""Share groups (KIP-932): share sessions, what members are given and say, where groups read."""
