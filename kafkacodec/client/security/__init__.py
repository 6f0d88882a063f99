"""TLS and SASL of clients."""
