"""Clients that block, over those for asyncio."""
