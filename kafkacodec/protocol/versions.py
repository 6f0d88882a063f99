"""Which version of each API two sides have in common."""

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
    """The versions of this library by API key; of all APIs, or of those given."""
    return {key: APIS[key].valid_versions for key in (APIS if api_keys is None else api_keys)}


def ranges_in(response: Any) -> dict[int, range]:
    """What an ApiVersionsResponse says of the broker, by API key. An empty or inverted range is left out."""
    ranges = {entry.api_key: range(entry.min_version, entry.max_version + 1) for entry in response.api_keys}
    return {key: versions for key, versions in ranges.items() if versions and versions.start >= 0}


def highest_common(api_key: int, theirs: Mapping[int, range], ours: range | None = None) -> int:
    """The highest version of an API that both sides have; `ours` is what this library has, where it is not given.

    Raises UnsupportedVersion where there is none.
    """
    if ours is None:
        if api_key not in APIS:
            raise UnsupportedVersion(f"no API has the key {api_key}")
        ours = APIS[api_key].valid_versions
    other = theirs.get(api_key, range(0))
    low, high = max(ours.start, other.start), min(ours.stop, other.stop) - 1
    if not ours or not other or low > high:
        name = APIS[api_key].name if api_key in APIS else f"API {api_key}"
        raise UnsupportedVersion(f"{name}: {version_text(ours)} here, {version_text(other)} there, none in common")
    return high


def api_versions_response(ranges: Mapping[int, range], *, error_code: int = 0) -> ApiVersionsResponse:
    """The answer of a broker that has these versions."""
    response = messages.ApiVersionsResponse
    entry = response.ApiVersion
    api_keys = [
        entry(api_key=key, min_version=versions.start, max_version=versions.stop - 1)
        for key, versions in sorted(ranges.items())
        if versions
    ]
    return response(error_code=error_code, api_keys=api_keys)
