"""The version of a request for a broker; an error names the Kafka release that is needed."""

from __future__ import annotations

from typing import Final

from kafkacodec.client.core.calls import Versions
from kafkacodec.errors import UnsupportedVersion
from kafkacodec.messages import APIS
from kafkacodec.protocol.versions import highest_common

__all__ = ["usable_version"]

# The Kafka release that brought an API, and later versions of it that calls need.
_RELEASES: Final[dict[tuple[int, int], str]] = {
    (2, 0): "0.8", (2, 1): "0.10.1", (2, 7): "3.0", (2, 8): "3.6", (2, 9): "3.9", (2, 11): "4.2",
    (3, 0): "0.8", (3, 8): "2.3", (8, 0): "0.8.1", (8, 2): "0.9", (9, 0): "0.8.1", (9, 2): "0.10.2", (9, 7): "2.5",
    (13, 0): "0.9", (13, 3): "2.4", (15, 0): "0.9", (15, 3): "2.3", (16, 0): "0.9", (16, 4): "2.6", (16, 5): "3.8",
    (18, 0): "0.10", (18, 3): "2.4", (19, 0): "0.10.1", (19, 1): "0.10.2", (19, 4): "2.4", (20, 0): "0.10.1",
    (20, 6): "2.8", (21, 0): "0.11", (22, 0): "0.11", (27, 0): "0.11", (29, 0): "0.11", (29, 1): "2.0",
    (30, 0): "0.11", (30, 1): "2.0", (31, 0): "0.11", (31, 1): "2.0", (32, 0): "0.11", (32, 1): "1.1", (32, 3): "2.6",
    (33, 0): "0.11", (34, 0): "1.0", (35, 0): "1.0", (37, 0): "1.0", (38, 0): "1.1", (38, 3): "3.3", (39, 0): "1.1",
    (40, 0): "1.1", (41, 0): "1.1", (42, 0): "1.1", (43, 0): "2.2", (43, 1): "2.4",
    (44, 0): "2.3", (45, 0): "2.4", (45, 1): "4.1", (46, 0): "2.4", (47, 0): "2.4", (48, 0): "2.6", (49, 0): "2.6",
    (50, 0): "2.7", (51, 0): "2.7", (55, 0): "3.3", (57, 0): "2.7", (57, 1): "3.3", (60, 0): "2.8", (60, 2): "4.0",
    (61, 0): "2.8", (64, 0): "3.3", (65, 0): "3.0", (66, 0): "3.0", (66, 1): "3.8", (66, 2): "4.1", (69, 0): "3.7",
    (74, 0): "3.7", (74, 1): "4.1", (77, 0): "4.0", (80, 0): "3.9", (81, 0): "3.9", (89, 0): "4.1",
    (90, 0): "4.1", (91, 0): "4.1", (92, 0): "4.1",
}  # fmt: skip


def usable_version(api_key: int, versions: Versions, least: int = 0, most: int | None = None, needs: str = "") -> int:
    """The highest version of an API that a broker has, up to `most`.

    Args:
        api_key: the API.
        versions: what the broker has in common with this library.
        least: the lowest version that will do.
        most: the highest version to use; None if any will do.
        needs: what makes `least` necessary, such as "a filter by state", for the error.

    Raises:
        UnsupportedVersion: the broker has none of them. It names the API and the release of Kafka that has it.
    """
    name = APIS[api_key].name
    release = _RELEASES.get((api_key, least))
    later = f"; Kafka {release} and later have it" if release else ""
    if api_key not in versions:
        raise UnsupportedVersion(f"the broker does not have {name}{later}")
    ours = APIS[api_key].valid_versions
    found = highest_common(api_key, versions, ours if most is None else range(ours.start, most + 1))
    if found < least:
        raise UnsupportedVersion(f"{needs or name} needs version {least} of {name}, the broker has {found}{later}")
    return found
