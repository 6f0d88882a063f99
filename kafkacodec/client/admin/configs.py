"""Configurations of topics, brokers, groups and client metrics: describe, change, replace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.arguments import config_texts
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import Operations, anywhere, as_rows, several
from kafkacodec.client.checks import mapping
from kafkacodec.client.core.calls import ANY, Answer, Place
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError
from kafkacodec.messages.keys import ALTER_CONFIGS, DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, LIST_CONFIG_RESOURCES
from kafkacodec.protocol.terms import (
    CONFIG_RESOURCES,
    CONFIG_SOURCES,
    CONFIG_TYPES,
    ConfigResourceType,
    code_of,
    word,
)

__all__ = ["Append", "ConfigEntry", "ConfigOperations", "ConfigResource", "ConfigSynonym", "Subtract"]

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_OWN_BROKER: Final = frozenset({"broker", "broker_logger"})  # types whose configurations only the broker itself has


class ConfigResource(NamedTuple):
    """A resource with a configuration; equal to the tuple ``(type, name)``.

    `name` is a topic, a group, a broker id as text, or empty for the default of all brokers.
    """

    type: ConfigResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}".rstrip()


class ConfigSynonym(NamedTuple):
    """A value that applies if the synonyms before it are removed. `source` is as in `ConfigEntry`."""

    name: str
    value: str | None
    source: str


class ConfigEntry(NamedTuple):
    """One configuration of a resource.

    `value` is None if there is none or it is sensitive. `source` is ``"default"``, ``"static_broker"``,
    ``"dynamic_topic"``, ``"dynamic_broker"``, ``"dynamic_default_broker"`` and so on; `type` is ``"int"``,
    ``"list"`` and so on, and None before Kafka 2.6.
    """

    name: str
    value: str | None
    source: str
    read_only: bool
    sensitive: bool
    type: str | None
    synonyms: list[ConfigSynonym]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """Whether the default applies, as nothing sets it."""
        return self.source == "default"


class Append(str):
    """Values to add to a list configuration, separated by commas."""


class Subtract(str):
    """Values to remove from a list configuration, separated by commas."""


class ConfigOperations(Operations):
    """The calls on configurations."""

    @as_rows(ConfigEntry, keys={"resource_type": str, "resource_name": str})
    async def describe_configs(
        self,
        resources: Iterable[tuple[ConfigResourceType, str]],
        *,
        names: str | Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Describe the configurations of resources, by name.

        Args:
            resources: pairs such as ``("topic", "orders")`` or ``("broker", "1")``.
            names: the configurations to describe. Default: all.
            include_synonyms: include the values that would apply instead (Kafka 1.1 and later).
            include_documentation: include their documentation (Kafka 2.6 and later).
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by resource, such as UnknownTopicOrPartitionError.
        """
        wanted = None if names is None else several("names", names)

        def request(keys: list[ConfigResource], version: int) -> Any:
            resource = messages.DescribeConfigsRequest.DescribeConfigsResource
            return messages.DescribeConfigsRequest(
                resources=[
                    resource(resource_type=_code(key), resource_name=key.name, configuration_keys=wanted)
                    for key in keys
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )

        needs = "include_documentation" if include_documentation else "include_synonyms" if include_synonyms else ""
        ask = Ask(
            api_key=DESCRIBE_CONFIGS,
            request=request,
            read=_described,
            place=_place,
            least=3 if include_documentation else 1 if include_synonyms else 0,
            needs=needs,
            final=frozenset({UNKNOWN_TOPIC_OR_PARTITION}),
        )
        return await self._each(ask, _resources(resources), timeout_ms, "resources could not be described")

    async def incremental_alter_configs(
        self,
        changes: Mapping[tuple[ConfigResourceType, str], Mapping[str, str | float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Change some configurations and keep the others (KIP-339, Kafka 2.3 and later).

        Args:
            changes: the new value by resource and name: text, or a number or bool. None restores the default; `Append`
                and `Subtract` change a list.
            validate_only: only check whether the change is possible.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by resource, such as InvalidConfigError.
        """
        wanted = _wanted("changes", changes)

        def request(keys: list[ConfigResource], version: int) -> Any:
            entry = messages.IncrementalAlterConfigsRequest.AlterableConfig
            resource = messages.IncrementalAlterConfigsRequest.AlterConfigsResource
            resources = [
                resource(
                    resource_type=_code(key),
                    resource_name=key.name,
                    configs=[
                        entry(name=name, config_operation=_operation(value), value=value)
                        for name, value in wanted[key].items()
                    ],
                )
                for key in keys
            ]
            return messages.IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)

        await self._alter(INCREMENTAL_ALTER_CONFIGS, request, wanted, timeout_ms)

    async def alter_configs(
        self,
        configs: Mapping[tuple[ConfigResourceType, str], Mapping[str, str | float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Replace the whole dynamic configuration of resources; anything not named gets its default.

        For brokers before Kafka 2.3. Later ones have `incremental_alter_configs`, which keeps the rest.

        Args:
            configs: all configurations with their values, by resource: text, or a number or bool.
            validate_only: only check whether the change is possible.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by resource, such as InvalidConfigError.
        """
        wanted = _wanted("configs", configs)

        def request(keys: list[ConfigResource], version: int) -> Any:
            entry = messages.AlterConfigsRequest.AlterableConfig
            resource = messages.AlterConfigsRequest.AlterConfigsResource
            resources = [
                resource(
                    resource_type=_code(key),
                    resource_name=key.name,
                    configs=[entry(name=name, value=value) for name, value in wanted[key].items()],
                )
                for key in keys
            ]
            return messages.AlterConfigsRequest(resources=resources, validate_only=validate_only)

        await self._alter(ALTER_CONFIGS, request, wanted, timeout_ms)

    @as_rows(ConfigResource)
    async def list_config_resources(
        self, types: ConfigResourceType | Iterable[ConfigResourceType] = (), *, timeout_ms: int | None = None
    ) -> list[ConfigResource]:
        """List the resources that have configurations, of some types or all.

        Needs Kafka 4.1 or later; 3.7 and later accept only ``["client_metrics"]``.
        """
        codes = [code_of("types", CONFIG_RESOURCES, name) for name in several("types", types)]
        client_metrics = codes == [CONFIG_RESOURCES["client_metrics"]]

        def request(keys: list[str], version: int) -> Any:
            return messages.ListConfigResourcesRequest(resource_types=codes if version else [])

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, list[ConfigResource] | BrokerError]]:
            found = [
                ConfigResource(word(CONFIG_RESOURCES, entry.resource_type), entry.resource_name)  # type: ignore[arg-type]
                for entry in answer.message.config_resources
            ]
            yield keys[0], refusal(answer.message.error_code) or found

        ask = Ask(
            api_key=LIST_CONFIG_RESOURCES,
            request=request,
            read=read,
            place=anywhere,
            least=0 if client_metrics else 1,
            needs="" if client_metrics else "listing resources of types other than client_metrics",
        )
        return await self._one(ask, "", timeout_ms)

    async def _alter(
        self, api_key: int, request: Any, resources: Iterable[ConfigResource], timeout_ms: int | None
    ) -> None:
        def read(keys: list[ConfigResource], answer: Answer) -> Iterable[tuple[ConfigResource, BrokerError | None]]:
            for entry in answer.message.responses:
                yield _resource(entry), refusal(entry.error_code, entry.error_message)

        ask = Ask(
            api_key=api_key, request=request, read=read, place=_place, final=frozenset({UNKNOWN_TOPIC_OR_PARTITION})
        )
        await self._each(ask, _resources(resources), timeout_ms, "resources were not altered")


def _resources(resources: Iterable[tuple[ConfigResourceType, str]]) -> list[ConfigResource]:
    found = [_key(resource) for resource in resources]
    for key in found:
        _code(key)
        _place(key)
    return found


def _key(resource: Any) -> ConfigResource:
    pair = isinstance(resource, Sequence) and not isinstance(resource, str) and len(resource) == 2
    if not pair or not all(isinstance(part, str) for part in resource):
        raise TypeError(f"a resource is a pair of texts such as ('topic', 'orders'), not {resource!r}")
    return ConfigResource(*resource)


def _wanted(name: str, given: Any) -> dict[ConfigResource, Mapping[str, str | None]]:
    """The values by resource. Raises TypeError."""
    wanted = {_key(resource): values for resource, values in mapping(name, given).items()}
    return {key: config_texts(f"the configs of {key.type} {key.name!r}", of) for key, of in wanted.items()}


def _code(resource: ConfigResource) -> int:
    return code_of("the type of a resource", CONFIG_RESOURCES, resource.type)


def _place(resource: ConfigResource) -> Place:
    if resource.type not in _OWN_BROKER or not resource.name:
        return ANY
    if not resource.name.isdecimal():
        raise ValueError(f"the name of a broker is its id, not {resource.name!r}")
    return int(resource.name)


def _resource(entry: Any) -> ConfigResource:
    return ConfigResource(word(CONFIG_RESOURCES, entry.resource_type), entry.resource_name)  # type: ignore[arg-type]


def _operation(value: str | None) -> int:
    if value is None:
        return _DELETE
    return _APPEND if isinstance(value, Append) else _SUBTRACT if isinstance(value, Subtract) else _SET


def _described(
    keys: list[ConfigResource], answer: Answer
) -> Iterable[tuple[ConfigResource, dict[str, ConfigEntry] | BrokerError]]:
    for entry in answer.message.results:
        configs = {config.name: _entry(config, answer.version) for config in entry.configs}
        yield _resource(entry), refusal(entry.error_code, entry.error_message) or configs


def _entry(config: Any, version: int) -> ConfigEntry:
    if version >= 1:
        source = word(CONFIG_SOURCES, config.config_source)
    else:
        source = "default" if config.is_default else "unknown"
    return ConfigEntry(
        config.name,
        config.value,
        source,
        config.read_only,
        config.is_sensitive,
        word(CONFIG_TYPES, config.config_type) if config.config_type else None,
        [ConfigSynonym(other.name, other.value, word(CONFIG_SOURCES, other.source)) for other in config.synonyms],
        config.documentation,
    )
