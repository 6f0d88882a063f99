"""Parts that all clients share, without I/O: requests and their destinations, cluster metadata, retries."""
