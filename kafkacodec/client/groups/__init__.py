"""Membership of groups without I/O: assignors, classic and KIP-848 memberships, offsets, share groups."""
