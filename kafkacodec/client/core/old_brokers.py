"""Brokers before 0.10, which have no ApiVersions and close the connection on an unknown request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkacodec.client.core.calls import Versions
from kafkacodec.messages.keys import PRODUCE
from kafkacodec.protocol.releases import BASELINES

__all__ = ["baseline", "baseline_of", "throttles_late"]

_FIRST_OF_2_0: Final = 6  # of Produce


def baseline(version: str) -> Mapping[int, range]:
    """The API versions of a release such as ``"0.9.0"``, ``"0.9.0.1"`` or ``"0.9"``. Raises ValueError for others."""
    return BASELINES[baseline_of(version)]


def baseline_of(version: str) -> str:
    """The key of `BASELINES` for a release. Raises ValueError for unknown releases and those after 0.9."""
    parts = version.split(".")
    found = [name for name in BASELINES if [*parts, "0"][:3] == name.split(".")]
    if len(parts) < 2 or not found or not all(part.isdigit() for part in parts):
        raise ValueError(
            f"broker_version_fallback names the release of a broker without ApiVersions, one of "
            f"{', '.join(BASELINES)}, not {version!r}; brokers from 0.10 on tell their versions"
        )
    return found[0]


def throttles_late(versions: Versions) -> bool:
    """Whether a broker delays its answer to a request over quota, as before 2.0, so that the client need not wait.

    Later brokers answer at once, and the client waits (KIP-219).
    """
    return PRODUCE in versions and _FIRST_OF_2_0 not in versions[PRODUCE]
