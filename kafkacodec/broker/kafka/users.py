"""Users and quotas, and answers to unexpected SASL calls."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.protocol.terms import SCRAM_MECHANISMS

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = [
    "alter_client_quotas",
    "alter_user_scram_credentials",
    "describe_client_quotas",
    "describe_user_scram_credentials",
    "sasl_authenticate",
    "sasl_handshake",
]

_HASHES: Final = {SCRAM_MECHANISMS["SCRAM-SHA-256"]: "sha256", SCRAM_MECHANISMS["SCRAM-SHA-512"]: "sha512"}
_ITERATIONS: Final = (4096, 16384)
_OF_USERS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_OF_IPS: Final = ("connection_creation_rate",)
_ENTITIES: Final = {"user": _OF_USERS, "client-id": _OF_USERS, "ip": _OF_IPS}
_WHOLE: Final = ("producer_byte_rate", "consumer_byte_rate", "connection_creation_rate")
_EXACT, _DEFAULT, _ANY = range(3)
_IP, _LOCAL = "ip", "localhost"

Entity = dict[str, str | None]
"""The name by the type; None for the default."""


# SCRAM users


def describe_user_scram_credentials(node: Node, request: Request) -> Any:
    """Mechanisms and iterations of users (KIP-554)."""
    response = messages.DescribeUserScramCredentialsResponse(error_message="")
    asked = request.message.users
    names = Counter(user.name for user in asked or ()) or Counter({name: 1 for name, _ in node.catalog.scram})
    for name, times in names.items():
        row = response.DescribeUserScramCredentialsResult(user=name, error_message="")
        infos = [response.CredentialInfo(mechanism=kind, iterations=record.iterations)
                 for (user, kind), record in sorted(node.catalog.scram.items()) if user == name]  # fmt: skip
        if times > 1:
            row.error_code, row.error_message = errors.DUPLICATE_RESOURCE, "the user is in the request twice"
        elif not infos:
            row.error_code, row.error_message = errors.RESOURCE_NOT_FOUND, f"there is no user {name!r}"
        else:
            row.credential_infos = infos
        response.results.append(row)
    return response


def alter_user_scram_credentials(node: Node, request: Request) -> Any:
    """Set and remove credentials, at most one change for each user."""
    message = request.message
    response = messages.AlterUserScramCredentialsResponse()
    rows: dict[str, Any] = {}
    records: dict[str, bytes] = {}
    for change in (*message.deletions, *message.upsertions):
        name, removes = change.name, not hasattr(change, "salt")
        row = rows.setdefault(name, response.AlterUserScramCredentialsResult(user=name, error_message=None))
        if row.error_code:  # the first error stays
            continue
        if records.pop(name, None) is not None:
            row.error_code, row.error_message = errors.DUPLICATE_RESOURCE, "the user is in the request twice"
            continue
        row.error_code, row.error_message = _wrong_credential(node, change, removes)
        if not row.error_code:
            records[name] = node.catalog.scram_user(_removed(change) if removes else _credential(change))
    response.results = list(rows.values())
    return node.change_rows([*records.values()], request, response, response.results)


def _wrong_credential(node: Node, change: Any, removes: bool) -> tuple[int, str | None]:
    if not change.name:
        return errors.UNACCEPTABLE_CREDENTIAL, "the name is empty"
    if change.mechanism not in _HASHES:
        return errors.UNSUPPORTED_SASL_MECHANISM, "unknown SCRAM mechanism"
    if removes:
        known = (change.name, change.mechanism) in node.catalog.scram
        return (errors.NONE, None) if known else (errors.RESOURCE_NOT_FOUND, "there is no such credential")
    low, high = _ITERATIONS
    if not low <= change.iterations <= high:
        return errors.UNACCEPTABLE_CREDENTIAL, f"the iterations must be from {low} to {high}"
    return errors.NONE if change.salted_password else errors.UNKNOWN_SERVER_ERROR, None


def _removed(change: Any) -> Any:
    return messages.RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)


def _credential(change: Any) -> Any:
    """The record of a credential: the keys of RFC 5802, not the salted password."""
    kind = _HASHES[change.mechanism]
    client_key = hmac.new(change.salted_password, b"Client Key", kind).digest()
    return messages.UserScramCredentialRecord(
        name=change.name, mechanism=change.mechanism, salt=change.salt, iterations=change.iterations,
        stored_key=hashlib.new(kind, client_key).digest(),
        server_key=hmac.new(change.salted_password, b"Server Key", kind).digest(),
    )  # fmt: skip


# Quotas


def describe_client_quotas(node: Node, request: Request) -> Any:
    """Quotas whose entity matches all components (KIP-546)."""
    message = request.message
    response = messages.DescribeClientQuotasResponse(error_message="")
    kinds = [component.entity_type for component in message.components]
    code = _refuses_components(message.components)
    if code:
        text = "the type of an entity is unknown, empty, or there twice, or a kind of match does not fit"
        return messages.DescribeClientQuotasResponse(error_code=code, error_message=text, entries=None)
    entries: list[Any] = []
    for entity, values in node.catalog.quotas.items():
        parts = dict(entity)
        if all(_matches(parts, component) for component in message.components):
            if message.strict and len(parts) > len(kinds):
                continue
            row = response.EntryData()
            entries.append(row)
            row.entity = [response.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            row.values = [response.ValueData(key=key, value=value) for key, value in values.items()]
    response.entries = entries
    return response


def _refuses_components(components: Any) -> int:
    """The error of the first component that is wrong; 0 for none."""
    seen: set[str] = set()
    for component in components:
        kind, has_name = component.entity_type, component.match is not None
        if not kind or kind in seen:
            return errors.INVALID_REQUEST
        if kind not in _ENTITIES:
            return errors.UNSUPPORTED_VERSION
        if component.match_type not in (_EXACT, _DEFAULT, _ANY) or has_name != (component.match_type == _EXACT):
            return errors.INVALID_REQUEST
        seen.add(kind)
    return errors.INVALID_REQUEST if _IP in seen and len(seen) > 1 else errors.NONE


def _matches(parts: dict[str, str | None], component: Any) -> bool:
    if component.entity_type not in parts:
        return False
    name = parts[component.entity_type]
    if component.match_type == _EXACT:
        return bool(name == component.match)
    return name is None if component.match_type == _DEFAULT else True


def alter_client_quotas(node: Node, request: Request) -> Any:
    """Set and remove quotas, (KIP-546)."""
    message = request.message
    response = messages.AlterClientQuotasResponse()
    entities = [{part.entity_type: part.entity_name for part in entry.entity} for entry in message.entries]
    times = Counter(frozenset(entity.items()) for entity in entities)
    records: list[bytes] = []
    done: set[Any] = set()
    for entity, entry in zip(entities, message.entries, strict=True):
        key = frozenset(entity.items())
        if key in done:
            continue
        done.add(key)
        row = response.EntryData(error_message=None)
        row.entity = [response.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
        response.entries.append(row)
        wrong = _wrong_change(entity, entry.ops)
        if not wrong and not message.validate_only:
            records += [node.catalog.quota(_quota(entity, op)) for op in entry.ops]
        if not wrong and times[key] > 1:  # the first counts all the same
            wrong = "the entity is in the request twice"
        if wrong:
            row.error_code, row.error_message = errors.INVALID_REQUEST, wrong
    return node.change_rows(records, request, response, response.entries)


def _quota(entity: Entity, op: Any) -> Any:
    record = messages.ClientQuotaRecord(key=op.key, value=op.value, remove=op.remove)
    record.entity = [record.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    return record


def _wrong_change(entity: Entity, ops: Any) -> str | None:
    twice = len({op.key for op in ops}) < len(ops)
    wrong = _wrong_entity(entity) or ("a key is there twice" if twice else None)
    return wrong or next(filter(None, (_wrong_quota(entity, op) for op in ops)), None)


def _wrong_entity(entity: Entity) -> str | None:
    if not entity:
        return "the entity is empty"
    for kind, name in entity.items():
        if kind not in _ENTITIES:
            return f"unknown type of an entity: {kind}"
        if name == "":
            return "the name of an entity is empty"
        if kind == _IP and name not in (None, _LOCAL):
            try:
                ipaddress.ip_address(name or "")
            except ValueError:
                return f"not an IP address: {name}"
    return "an IP address has no user and no client" if _IP in entity and len(entity) > 1 else None


def _wrong_quota(entity: Entity, op: Any) -> str | None:
    if op.remove:
        return None
    if any(op.key not in _ENTITIES[kind] for kind in entity):
        return f"unknown key of this entity: {op.key}"
    if not 0 < op.value < math.inf:
        return f"{op.key} must be a number greater than 0"
    if op.key in _WHOLE and (op.value != int(op.value) or op.value > 1 << 63):
        return f"{op.key} must be a whole number of 64 bits"
    return None


# What there is none of


def sasl_handshake(node: Node, request: Request) -> Any:
    """The listener has no SASL, or the client has logged in for good."""
    return messages.SaslHandshakeResponse(error_code=errors.ILLEGAL_SASL_STATE)


def sasl_authenticate(node: Node, request: Request) -> Any:
    """The listener has no SASL, or nothing announced the token."""
    text = "SaslAuthenticate request received after successful authentication"
    return messages.SaslAuthenticateResponse(error_code=errors.ILLEGAL_SASL_STATE, error_message=text)
