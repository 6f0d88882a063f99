"""Share groups (KIP-932): deliveries and acknowledgements."""
