"""A group of the client rewrite whose members, in this process and in others, tell what they read."""
