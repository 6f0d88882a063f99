"""The owner of the sockets: connections, and the network that runs machines over them."""
