"""Objects with only the Arrow interface, like those of another library."""

from __future__ import annotations

from typing import Any


class Capsules:
    """Returns the same capsules of an array in each call, as a faulty producer may."""

    def __init__(self, data: Any) -> None:
        self.given = data.__arrow_c_array__()

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.given


class Stream:
    """Returns the same capsule of a stream in each call."""

    def __init__(self, data: Any) -> None:
        self.given = data.__arrow_c_stream__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.given
