"""The number of examples and the settings of the Hypothesis state machines.

The default takes seconds; ``STATE_MACHINE_EXAMPLES=20000`` in the environment takes hours. A TMPDIR in memory is
faster. Failures are shrunk only in long runs, since this takes minutes.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

from tests.examples import examples

EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "0"))

machine_settings = settings(
    max_examples=examples(EXAMPLES or 80),
    stateful_step_count=80 if EXAMPLES else 40,
    deadline=None,
    phases=[*Phase] if EXAMPLES else [Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
