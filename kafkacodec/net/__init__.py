"""What both sides of a socket share: frames received in place, a loop on a thread, timers, TLS, SASL, addresses."""
