"""Version negotiation: the highest version of each API that both sides support."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafkacodec import messages
from kafkacodec.errors import UnsupportedVersion
from kafkacodec.messages import APIS
from kafkacodec.messages.model import version_text

if TYPE_CHECKING:
    from kafkacodec.messages import ApiVersionsResponse

__all__ = ["api_versions_response", "highest_common", "ranges_in", "supported_ranges"]


def supported_ranges(api_keys: Iterable[int] | None = None) -> dict[int, range]:
    """The versions that this library supports, by API key, for the given APIs or all."""
    return {key: APIS[key].valid_versions for key in (APIS if api_keys is None else api_keys)}


def ranges_in(response: Any) -> dict[int, range]:
    """The version ranges of an ApiVersionsResponse by API key, without empty or inverted ones."""
    ranges = {entry.api_key: range(entry.min_version, entry.max_version + 1) for entry in response.api_keys}
    return {key: versions for key, versions in ranges.items() if versions and versions.start >= 0}


def highest_common(api_key: int, theirs: Mapping[int, range], ours: range | None = None) -> int:
    """The highest version of an API that both sides support. `ours` defaults to what this library supports.

    Raises UnsupportedVersion if there is none.
    """
    if ours is None:
        if api_key not in APIS:
            raise UnsupportedVersion(f"unknown API key {api_key}")
        ours = APIS[api_key].valid_versions
    other = theirs.get(api_key, range(0))
    low, high = max(ours.start, other.start), min(ours.stop, other.stop) - 1
    if not ours or not other or low > high:
        name = APIS[api_key].name if api_key in APIS else f"API {api_key}"
        raise UnsupportedVersion(
            f"{name}: no common version (this side has {version_text(ours)}, the peer {version_text(other)})"
        )
    return high


def api_versions_response(ranges: Mapping[int, range], *, error_code: int = 0) -> ApiVersionsResponse:
    """The ApiVersions response of a broker that supports these versions."""
    response = messages.ApiVersionsResponse
    entry = response.ApiVersion
    api_keys = [
        entry(api_key=key, min_version=versions.start, max_version=versions.stop - 1)
        for key, versions in sorted(ranges.items())
        if versions
    ]
    return response(error_code=error_code, api_keys=api_keys)
