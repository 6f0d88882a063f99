"""ApiVersions (KIP-35, KIP-511, KIP-584, KIP-1242)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.broker.state.catalog import FEATURES
from kafkacodec.messages import keys
from kafkacodec.protocol.versions import api_versions_response

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["api_versions"]

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_NAMES_SOFTWARE: Final = 3
_SHOWS_MINIMUM_0: Final = 4
_NAMES_BROKER: Final = 5


def api_versions(node: Node, request: Request) -> Any:
    """The versions of the table of APIs, and the features.

    - v3: the client names its software.
    - v4: supported features whose lowest level is 0 are listed too.
    - v5: the client says which broker it expects.
    """
    if request.message is None:
        return api_versions_response(
            {keys.API_VERSIONS: node.versions[keys.API_VERSIONS]}, error_code=errors.UNSUPPORTED_VERSION
        )
    version, message = request.version, request.message
    response = api_versions_response(node.versions)
    if version >= _NAMES_SOFTWARE:
        names = (message.client_software_name, message.client_software_version)
        if not all(_SOFTWARE.fullmatch(name) for name in names):
            return messages.ApiVersionsResponse(error_code=errors.INVALID_REQUEST)
    if version >= _NAMES_BROKER:
        wrong = _another_broker(node, request)
        if wrong:
            return messages.ApiVersionsResponse(error_code=wrong)
    if version >= _NAMES_SOFTWARE:
        _add_features(node, response, version)
    return response


def _another_broker(node: Node, request: Request) -> int:
    message = request.message
    cluster, broker = message.cluster_id, message.node_id
    if cluster is None and broker < 0:
        return errors.NONE
    if cluster is None or broker < 0:
        return errors.INVALID_REQUEST
    same = cluster == node.cluster_id and broker == request.broker
    return errors.NONE if same else errors.REBOOTSTRAP_REQUIRED


def _add_features(node: Node, response: Any, version: int) -> None:
    supported, finalized = response.SupportedFeatureKey, response.FinalizedFeatureKey
    response.supported_features = [
        supported(name=name, min_version=low, max_version=high)
        for name, (low, high, _) in FEATURES.items()
        if low > 0 or version >= _SHOWS_MINIMUM_0
    ]
    response.finalized_features = [
        finalized(name=name, max_version_level=level, min_version_level=level)
        for name, level in sorted(node.catalog.metadata.features.items())
    ]
    response.finalized_features_epoch = node.catalog.metadata.offset
