"""Who reads which partition: the assignors of groups, for clients, servers and other protocols."""
