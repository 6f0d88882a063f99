def live() -> int:
    """Bytes of all blocks in use."""

def kept() -> int:
    """Bytes of freed blocks that are kept for later."""

def trim() -> int:
    """Gives those that are kept back to the system; how many bytes they had."""
