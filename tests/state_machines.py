"""How long Hypothesis plays with the state machines of the dialects.

``STATE_MACHINE_EXAMPLES=20000`` in the environment makes a run of hours of what takes seconds otherwise.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "0"))

machine_settings = settings(
    max_examples=EXAMPLES or 80,
    stateful_step_count=80 if EXAMPLES else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
