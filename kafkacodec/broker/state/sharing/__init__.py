"""Share groups (KIP-932): their members, the states of partitions, and acquired records."""
