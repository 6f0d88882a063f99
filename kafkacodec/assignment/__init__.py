"""Assignment of partitions to the members of groups, for clients, servers and other protocols."""
