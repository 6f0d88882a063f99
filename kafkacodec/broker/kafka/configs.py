"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.broker.config_keys import BROKER_CONFIGS, BROKER_DEFAULTS, synonyms
from kafkacodec.broker.kafka.config_kinds import GROUP_CONFIGS, METRICS_CONFIGS, wrong_value
from kafkacodec.broker.kafka.sharing.dead_letters import enabling
from kafkacodec.broker.topics.configs import TOPIC_CONFIGS, ConfigKey, parsed
from kafkacodec.broker.topics.names import wrong_name
from kafkacodec.datatypes import NamedTuple
from kafkacodec.protocol.terms import CONFIG_RESOURCES, CONFIG_SOURCES, CONFIG_TYPES, CONFIGURED

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["alter_configs", "describe_configs", "incremental_alter_configs", "list_config_resources", "topic_rows"]

_TOPIC, _BROKER, _LOGGER = CONFIG_RESOURCES["topic"], CONFIG_RESOURCES["broker"], CONFIG_RESOURCES["broker_logger"]
_METRICS, _GROUP = CONFIG_RESOURCES["client_metrics"], CONFIG_RESOURCES["group"]
_DEFAULT, _DEFAULT_BROKER = CONFIG_SOURCES["default"], CONFIG_SOURCES["dynamic_default_broker"]
_STATIC = CONFIG_SOURCES["static_broker"]
_SET_AT: Final = {
    _TOPIC: CONFIG_SOURCES["dynamic_topic"], _BROKER: CONFIG_SOURCES["dynamic_broker"],
    _METRICS: CONFIG_SOURCES["dynamic_client_metrics"], _GROUP: CONFIG_SOURCES["dynamic_group"],
}  # fmt: skip
_SHOWN: Final = (*_SET_AT, _LOGGER)
_LIST: Final = CONFIG_TYPES["list"]
_UNKNOWN: Final = 0
_IN_SYNC: Final = "min.insync.replicas"
_ELR: Final = "eligible.leader.replicas.version"
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_TYPES_FROM = 3
_AS_WHOLE: Final = -2  # of local retention


class _Wrong(NamedTuple):
    code: int
    text: str | None


class _Shown(NamedTuple):
    """A configuration: its value and source, and its other values, nearest first."""

    name: str
    kind: int
    value: str | None
    source: int
    synonyms: list[tuple[str, str, int]]
    description: str | None
    fixed: bool = False


# Describing


def describe_configs(node: Node, request: Request) -> Any:
    """Configurations of topics, of this broker, of groups and metrics. v1: synonyms. v3: types and descriptions."""
    message = request.message
    response = messages.DescribeConfigsResponse()
    unknown = [asked.resource_type for asked in message.resources if asked.resource_type not in _SHOWN]
    for asked in message.resources:
        row = response.DescribeConfigsResult(
            resource_type=asked.resource_type, resource_name=asked.resource_name, error_message=""
        )
        response.results.append(row)
        wrong = _cannot_describe(node, request, asked)
        if unknown:  # then the whole request is wrong
            wrong = _Wrong(errors.INVALID_REQUEST, f"unsupported resource type {unknown[0]}")
        if wrong is not None:
            row.error_code, row.error_message = wrong
            continue
        wanted = set(asked.configuration_keys or ())
        for shown in _shown(node, asked.resource_type, asked.resource_name):
            if not wanted or shown.name in wanted:
                row.configs.append(_described(response, shown, message, request.version))
    return response


def _described(response: Any, shown: _Shown, message: Any, version: int) -> Any:
    secret = shown.kind in (CONFIG_TYPES["password"], _UNKNOWN)
    made = response.DescribeConfigsResourceResult(
        name=shown.name, value=None if secret else shown.value, read_only=shown.fixed, config_source=shown.source,
        is_sensitive=secret,
    )  # fmt: skip
    if message.include_synonyms:
        synonym = response.DescribeConfigsSynonym
        made.synonyms = [
            synonym(name=name, value=None if secret else value, source=source) for name, value, source in shown.synonyms
        ]
    if version >= _TYPES_FROM:
        made.config_type = shown.kind
        made.documentation = shown.description if message.include_documentation else None
    return made


def _cannot_describe(node: Node, request: Request, asked: Any) -> _Wrong | None:
    kind, name = asked.resource_type, asked.resource_name
    if kind == _TOPIC:
        wrong = wrong_name(name)
        if wrong:
            return _Wrong(errors.INVALID_TOPIC_EXCEPTION, f"topic name is invalid: {wrong}")
        return None if node.catalog.topic(name) is not None else _Wrong(errors.UNKNOWN_TOPIC_OR_PARTITION, "")
    if kind in (_BROKER, _LOGGER):
        expected = request.broker
        if name == str(expected) or (kind == _BROKER and not name):
            return None
        return _Wrong(errors.INVALID_REQUEST, f"unexpected broker id, expected {expected} but received {name}")
    if kind in (_GROUP, _METRICS):
        return None if name else _Wrong(errors.INVALID_REQUEST, "the name is empty")
    return _Wrong(errors.INVALID_REQUEST, f"unsupported resource type {kind}")


def _shown(node: Node, kind: int, name: str) -> list[_Shown]:
    if kind == _TOPIC:
        return _of_topic(node, node.catalog.configs("topic", name))
    if kind == _BROKER:
        return _of_broker(node, name)
    if kind == _LOGGER:
        return []
    table = GROUP_CONFIGS if kind == _GROUP else METRICS_CONFIGS
    values = node.catalog.configs(CONFIGURED[kind], name)
    found = []
    for key in table.values():
        known = [(key.name, values[key.name], _SET_AT[kind])] if key.name in values else []
        if key.of_broker:
            known += _broker_synonyms(node, key.of_broker, str(node.id))
        elif kind == _GROUP:
            known.append((key.name, key.default, _DEFAULT))
        value, source = known[0][1:] if known else (key.default, _DEFAULT)
        found.append(_Shown(key.name, key.kind, value, source, known, key.description))
    return found


def _of_topic(node: Node, values: Mapping[str, str]) -> list[_Shown]:
    found = []
    defaults = node.config.running(node.catalog.of_broker(node.id)).topic_defaults
    for key in TOPIC_CONFIGS.values():
        own = parsed(key, values[key.name]) if key.name in values else None
        known = [] if own is None else [(key.name, own, _SET_AT[_TOPIC])]
        if key.of_broker:
            known += _broker_synonyms(node, key.of_broker[0].name, str(node.id))
        default = defaults.get(key.name, key.default)
        source = known[0][2] if known else _DEFAULT if key.of_broker or key.name not in defaults else _STATIC
        found.append(_Shown(key.name, key.kind, default if own is None else own, source, known, key.description))
    return found


def _broker_synonyms(node: Node, name: str, broker: str) -> list[tuple[str, str, int]]:
    """Return the values of a broker's configuration, and of others for the same thing, nearest first.

    As in Apache Kafka, what comes before the first value of the configuration itself is left out.
    """
    return list(dropwhile(lambda row: row[0] != name, _all_synonyms(node, name, broker)))


def _all_synonyms(node: Node, name: str, broker: str) -> list[tuple[str, str, int]]:
    if name == "node.id":
        return [(name, broker, _STATIC)]
    places = (
        (node.catalog.configs("broker", broker), _SET_AT[_BROKER]),
        (node.catalog.configs("broker", ""), _DEFAULT_BROKER),
        (node.config.texts, _STATIC),
        (BROKER_DEFAULTS, _DEFAULT),
    )
    names = synonyms(name)
    return [(one, values[one], source) for values, source in places for one in names if one in values]


def _of_broker(node: Node, name: str) -> list[_Shown]:
    if not name:
        values = node.catalog.configs("broker", "")
        return [_of_one(key, [(key, value, _DEFAULT_BROKER)]) for key, value in values.items()]
    changed = node.catalog.of_broker(int(name)).keys()
    names = (*BROKER_CONFIGS, *sorted(changed - BROKER_CONFIGS.keys()))
    return [_of_one(key, _broker_synonyms(node, key, name), changed) for key in names]


def _of_one(name: str, known: list[tuple[str, str, int]], changed: Collection[str] = ()) -> _Shown:
    """A configuration of a broker; the value of an unknown one may be a secret.

    A change of another one for the same thing takes the place of what the broker was given, which then shows its
    default, beside its source of before, as in Apache Kafka.
    """
    key = BROKER_CONFIGS.get(name)
    value, source = known[0][1:] if known else (None, _DEFAULT)
    if name not in changed and any(other in changed for other in synonyms(name)):
        value = BROKER_DEFAULTS.get(name)
    if key is None:
        return _Shown(name, _UNKNOWN, value, source, known, None, fixed=True)
    return _Shown(name, key.kind, value, source, known, key.description, key.fixed)


def topic_rows(node: Node, values: Mapping[str, str], row: Any) -> list[Any]:
    """The configurations of a new topic, as CreateTopics answers them.

    Unlike DescribeConfigs, it names the source of a default in any unit, and its number as it was set, below -1 too.
    """
    rows = []
    for key in TOPIC_CONFIGS.values():
        own = key.name in values
        value, source = (values[key.name], _SET_AT[_TOPIC]) if own else _default_of_topics(node, key)
        rows.append(row(name=key.name, value=value, config_source=source))
    return rows


def _default_of_topics(node: Node, key: ConfigKey) -> tuple[str, int]:
    if not key.of_broker:
        given = node.config.topic_defaults.get(key.name)
        return (key.default, _DEFAULT) if given is None else (given, _STATIC)
    units = dict(key.of_broker)
    for name, value, source in _all_synonyms(node, key.of_broker[0].name, str(node.id)):
        if source != _DEFAULT:
            return value if units[name] == 1 else str(int(value) * units[name]), source
    return key.default, _DEFAULT


# Altering


def incremental_alter_configs(node: Node, request: Request) -> Any:
    """Set, delete, append or subtract; configurations that are not named stay (KIP-339)."""
    return _alter(node, request, messages.IncrementalAlterConfigsResponse(), _incremental)


def alter_configs(node: Node, request: Request) -> Any:
    """Set the named configurations, and delete all others."""
    return _alter(node, request, messages.AlterConfigsResponse(), _whole)


def _alter(node: Node, request: Request, response: Any, wanted: Any) -> Any:
    message = request.message
    times = Counter((row.resource_type, row.resource_name) for row in message.resources)
    records: list[bytes] = []
    fails = False  # one resource fails all
    for asked in message.resources:
        row = response.AlterConfigsResourceResponse(
            resource_type=asked.resource_type, resource_name=asked.resource_name, error_message=None
        )
        response.responses.append(row)
        wrong: _Wrong | None = None
        if times[asked.resource_type, asked.resource_name] > 1:
            wrong = _Wrong(errors.INVALID_REQUEST, "the resource is in the request twice")
        if asked.resource_type != _TOPIC:
            wrong = wrong or _cannot_describe(node, request, asked)
        changes: dict[str, str | None] | _Wrong = {} if wrong else wanted(node, asked)
        if isinstance(changes, _Wrong):
            wrong = changes
            fails = fails or wrong.code == errors.UNKNOWN_SERVER_ERROR
        if wrong is not None:
            row.error_code, row.error_message = wrong
        elif not message.validate_only and isinstance(changes, dict):
            kind = CONFIGURED[asked.resource_type]
            records += enabling(node, asked.resource_type, changes)
            records += [node.catalog.config(kind, asked.resource_name, key, value) for key, value in changes.items()]
    if fails:
        records = []
        for row in response.responses:
            if row.error_code != errors.INVALID_REQUEST or not row.resource_name:
                row.error_code, row.error_message = errors.UNKNOWN_SERVER_ERROR, None
    return node.change_rows(records, request, response, response.responses)


def _incremental(node: Node, asked: Any) -> dict[str, str | None] | _Wrong:
    kind, name = asked.resource_type, asked.resource_name
    names = Counter(config.name for config in asked.configs)
    if any(count > 1 for count in names.values()):
        return _Wrong(errors.INVALID_REQUEST, "a configuration is named twice")
    if any(config.config_operation != _DELETE and config.value is None for config in asked.configs):
        return _Wrong(errors.INVALID_REQUEST, "a value is null")
    if any(config.config_operation not in (_SET, _DELETE, _APPEND, _SUBTRACT) for config in asked.configs):
        return _Wrong(errors.UNKNOWN_SERVER_ERROR, None)
    changes: dict[str, str | None] = {}
    now = {one.name: one for one in _shown(node, kind, name)}
    for config in asked.configs:
        key, value = config.name, config.value
        if config.config_operation in (_APPEND, _SUBTRACT):
            if key not in now or now[key].kind != _LIST:
                return _Wrong(errors.INVALID_CONFIG, f"{key} is not a list")
            value = _list(now[key].value or "", value, config.config_operation == _APPEND)
        changes[key] = None if config.config_operation == _DELETE else value
    return _checked(node, kind, asked.resource_name, changes)


def _list(now: str, value: str, appends: bool) -> str:
    parts = [part for part in now.split(",") if part]
    given = [part.strip() for part in value.split(",")]
    if appends:
        return ",".join(parts + [part for part in given if part not in parts])
    return ",".join(part for part in parts if part not in given)


def _whole(node: Node, asked: Any) -> dict[str, str | None] | _Wrong:
    kind = asked.resource_type
    if len({config.name for config in asked.configs}) < len(asked.configs):
        return _Wrong(errors.INVALID_REQUEST, "a configuration is named twice")
    if any(config.value is None for config in asked.configs):
        return _Wrong(errors.INVALID_REQUEST, "a value is null")
    changes: dict[str, str | None] = {config.name: config.value for config in asked.configs}
    for key in node.catalog.configs(CONFIGURED[kind], asked.resource_name):
        changes.setdefault(key, None)
    return _checked(node, kind, asked.resource_name, changes)


def _checked(node: Node, kind: int, name: str, changes: dict[str, str | None]) -> dict[str, str | None] | _Wrong:
    if kind == _TOPIC and not name:
        return _Wrong(errors.INVALID_REQUEST, "the name is empty")
    if kind == _TOPIC and wrong_name(name):
        return _Wrong(errors.INVALID_TOPIC_EXCEPTION, f"topic name is invalid: {wrong_name(name)}")
    one_of_many = kind == _BROKER and _IN_SYNC in changes and (name != "" or changes[_IN_SYNC] is None)
    if one_of_many and node.catalog.metadata.features.get(_ELR):  # the controller needs it (KIP-966)
        return _Wrong(errors.INVALID_CONFIG, f"with {_ELR}, {_IN_SYNC} is set for all brokers together, and stays")
    for key, value in changes.items():
        if value is None:
            continue
        wrong = wrong_value(kind, key, value, node.config)
        if wrong is not None:
            return _Wrong(*wrong)
    if kind == _TOPIC and node.catalog.topic(name) is None:
        return _Wrong(errors.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if kind == _BROKER and any(_local_exceeds_whole(node, name, changes, unit) for unit in ("ms", "bytes")):
        return _Wrong(errors.INVALID_REQUEST, "log.local.retention is more than log.retention")
    return changes


def _local_exceeds_whole(node: Node, broker: str, changes: Mapping[str, str | None], unit: str) -> bool:
    """Whether more would stay on the disk than in all (KIP-405)."""
    now = {**node.catalog.configs("broker", ""), **node.catalog.configs("broker", broker), **changes}
    changed = {name: value for name, value in now.items() if value is not None}
    defaults = node.config.running(changed).topic_defaults
    whole, local = (
        int(defaults.get(name, TOPIC_CONFIGS[name].default))
        for name in (f"retention.{unit}", f"local.retention.{unit}")
    )
    return whole >= 0 and local != _AS_WHOLE and (local < 0 or local > whole)


def list_config_resources(node: Node, request: Request) -> Any:
    """List the resources that have, or can have, configurations. v0: metrics only. v1: kinds (KIP-1142)."""
    response = messages.ListConfigResourcesResponse()
    kinds = list(request.message.resource_types) if request.version > 0 else [_METRICS]
    known = (_TOPIC, _BROKER, _LOGGER, _METRICS, _GROUP)
    if any(kind not in known for kind in kinds):
        response.error_code = errors.UNSUPPORTED_VERSION
        return response
    found: list[tuple[int, str]] = []
    for kind in kinds or known:
        if kind == _TOPIC:
            found += [(kind, name) for name in node.catalog.names()]
        elif kind in (_BROKER, _LOGGER):
            found += [(kind, str(broker)) for broker in node.brokers.running]
        else:
            found += [(kind, name) for name in node.catalog.configured(CONFIGURED[kind])]
    made = response.ConfigResource
    response.config_resources = [made(resource_name=name, resource_type=kind) for kind, name in found]
    return response
