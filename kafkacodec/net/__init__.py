"""Networking that clients and servers share: zero-copy frames, a loop on a thread, timers, TLS, SASL, addresses."""
