"""What both sides of a socket share: frames received in place, an event loop on a thread."""
