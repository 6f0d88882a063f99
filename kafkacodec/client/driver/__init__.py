"""What owns the sockets: connections, the network that runs machines over them, the loop's thread."""
