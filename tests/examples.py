"""How many examples Hypothesis tries: as many as a test says, or at most ten for `make quick`."""

from __future__ import annotations

import os

QUICK = bool(os.environ.get("KAFKACODEC_QUICK"))


def examples(count: int) -> int:
    return min(count, 10) if QUICK else count
