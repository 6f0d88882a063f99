"""The cluster: its brokers and features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from kafkacodec import messages
from kafkacodec.arguments import is_integer, one_of
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import Operations, anywhere, as_rows
from kafkacodec.client.checks import mapping
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.errors import BrokerError
from kafkacodec.messages.keys import API_VERSIONS, METADATA, UPDATE_FEATURES
from kafkacodec.protocol.terms import authorized_operations
from kafkacodec.signatures import suggests_arguments

__all__ = [
    "BrokerDescription",
    "ClusterDescription",
    "ClusterOperations",
    "Feature",
    "FeatureUpdate",
]

_UPGRADES: Final = {"upgrade": 1, "safe_downgrade": 2, "unsafe_downgrade": 3}
_TYPES_VERSION = 1  # of UpdateFeatures: distinguishes kinds of downgrades


class BrokerDescription(NamedTuple):
    """A broker and the listener that clients use."""

    id: int
    host: str
    port: int
    rack: str | None


class ClusterDescription(NamedTuple):
    """A cluster. `cluster_id` is None before Kafka 0.10.1, `controller_id` before 0.10 and while there is none.

    `authorized_operations` is None unless requested.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: list[BrokerDescription]
    authorized_operations: frozenset[str] | None


class Feature(NamedTuple):
    """A feature, such as ``metadata.version``: the levels that the broker supports, and the one in use.

    `finalized` is None if the cluster does not use it.
    """

    min_supported: int
    max_supported: int
    finalized: int | None


@suggests_arguments
@dataclass(frozen=True)
class FeatureUpdate:
    """The new level of a feature; 0 disables it."""

    level: int
    upgrade_type: Literal["upgrade", "safe_downgrade", "unsafe_downgrade"] = "upgrade"


class ClusterOperations(Operations):
    """The calls on the cluster as a whole."""

    async def describe_cluster(
        self, *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> ClusterDescription:
        """Describe the cluster: its brokers and controller."""
        operations = include_authorized_operations

        def request(keys: list[str], version: int) -> Any:
            return messages.MetadataRequest(topics=[], include_cluster_authorized_operations=operations)

        ask = Ask(
            api_key=METADATA,
            request=request,
            read=_described,
            place=anywhere,
            least=8 if operations else 0,
            most=10 if operations else None,  # later versions leave this to DescribeCluster
            needs="include_authorized_operations" if operations else "",
        )
        return await self._one(ask, "", timeout_ms)

    @as_rows(Feature, keys={"feature": str})
    async def describe_features(self, *, timeout_ms: int | None = None) -> dict[str, Feature]:
        """Describe the features of the cluster as one broker sees them (Kafka 2.7 and later; empty before)."""

        def request(keys: list[str], version: int) -> Any:
            return messages.ApiVersionsRequest(client_software_name="kafkacodec", client_software_version=_version())

        ask = Ask(api_key=API_VERSIONS, request=request, read=_features, place=anywhere)
        return await self._one(ask, "", timeout_ms)

    async def update_features(
        self,
        updates: Mapping[str, int | FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Change the levels of features, all or none (Kafka 3.3 and later).

        Args:
            updates: the level to upgrade to, or a `FeatureUpdate`, by feature name.
            validate_only: only check whether the change is possible.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            BrokerError: such as InvalidUpdateVersionError, FeatureUpdateFailedError.
        """
        wanted = {
            name: FeatureUpdate(item) if is_integer(item) else item
            for name, item in mapping("updates", updates).items()
        }
        for item in wanted.values():
            one_of("upgrade_type", item.upgrade_type, tuple(_UPGRADES))
        wait = self._broker_timeout(timeout_ms)

        def request(keys: list[str], version: int) -> Any:
            entry = messages.UpdateFeaturesRequest.FeatureUpdateKey
            entries = [
                entry(feature=name, max_version_level=item.level, upgrade_type=_UPGRADES[item.upgrade_type])
                for name, item in wanted.items()
            ]
            return messages.UpdateFeaturesRequest(timeout_ms=wait, feature_updates=entries, validate_only=validate_only)

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, BrokerError | None]]:
            message = answer.message
            failed = [entry for entry in message.results if entry.error_code]
            entry = failed[0] if failed and not message.error_code else message
            yield keys[0], refusal(entry.error_code, entry.error_message)

        ask = Ask(
            api_key=UPDATE_FEATURES, request=request, read=read, least=_TYPES_VERSION,
            needs="update_features",
        )  # fmt: skip
        await self._one(ask, "", timeout_ms)


def _version() -> str:
    from kafkacodec.version import __version__

    return __version__


def _described(keys: list[str], answer: Answer) -> Iterable[tuple[str, ClusterDescription]]:
    message = answer.message
    brokers = [BrokerDescription(b.node_id, b.host, b.port, b.rack or None) for b in message.brokers]
    yield (
        keys[0],
        ClusterDescription(
            message.cluster_id,
            message.controller_id if message.controller_id >= 0 else None,
            sorted(brokers),
            authorized_operations(message.cluster_authorized_operations),
        ),
    )


def _features(keys: list[str], answer: Answer) -> Iterable[tuple[str, dict[str, Feature] | BrokerError]]:
    message = answer.message
    finalized = {entry.name: entry.max_version_level for entry in message.finalized_features}
    found = {
        entry.name: Feature(entry.min_version, entry.max_version, finalized.get(entry.name))
        for entry in message.supported_features
    }
    yield keys[0], refusal(message.error_code) or found
