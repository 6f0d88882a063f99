"""Frames and headers around messages, version negotiation, and a connection without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.lazy import at_first_use

if TYPE_CHECKING:
    from kafkacodec.protocol.client_defaults import client_request
    from kafkacodec.protocol.connection import (
        Connection,
        RequestReceived,
        ResponseReceived,
        VersionsAgreed,
        VersionsRefused,
    )
    from kafkacodec.protocol.fetch import FetchedColumns, FetchedPartition, fetch_to_columns
    from kafkacodec.protocol.frames import (
        MAX_FRAME_SIZE,
        decode_request,
        decode_response,
        encode_request,
        encode_response,
        frame_size,
        request_pieces,
        response_pieces,
        split_frames,
    )
    from kafkacodec.protocol.headers import request_header_version, response_header_version
    from kafkacodec.protocol.produce import PackedRequest, produce_requests
    from kafkacodec.protocol.versions import api_versions_response, highest_common, ranges_in, supported_ranges

__all__ = [
    "MAX_FRAME_SIZE",
    "Connection",
    "FetchedColumns",
    "FetchedPartition",
    "PackedRequest",
    "RequestReceived",
    "ResponseReceived",
    "VersionsAgreed",
    "VersionsRefused",
    "api_versions_response",
    "client_request",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "fetch_to_columns",
    "frame_size",
    "highest_common",
    "produce_requests",
    "ranges_in",
    "request_header_version",
    "request_pieces",
    "response_header_version",
    "response_pieces",
    "split_frames",
    "supported_ranges",
]


_HOMES = {
    "client_request": "client_defaults",
    "Connection": "connection",
    "RequestReceived": "connection",
    "ResponseReceived": "connection",
    "VersionsAgreed": "connection",
    "VersionsRefused": "connection",
    "FetchedColumns": "fetch",
    "FetchedPartition": "fetch",
    "fetch_to_columns": "fetch",
    "MAX_FRAME_SIZE": "frames",
    "decode_request": "frames",
    "decode_response": "frames",
    "encode_request": "frames",
    "encode_response": "frames",
    "frame_size": "frames",
    "request_pieces": "frames",
    "response_pieces": "frames",
    "split_frames": "frames",
    "request_header_version": "headers",
    "response_header_version": "headers",
    "PackedRequest": "produce",
    "produce_requests": "produce",
    "api_versions_response": "versions",
    "highest_common": "versions",
    "ranges_in": "versions",
    "supported_ranges": "versions",
}
__getattr__ = at_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)
