"""What all parts of a client share, without I/O: requests and their places, the cluster's metadata, retries."""
