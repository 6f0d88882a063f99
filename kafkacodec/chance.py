"""Random numbers that no application sees: its own `random`, which it may have seeded, stays as it is."""

from __future__ import annotations

import os
import random
from typing import Final

__all__ = ["RANDOM"]

RANDOM: Final = random.Random()
"""Seeded by the system, in forked processes anew."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RANDOM.seed)
