"""Access control entries: describe, create, delete. `rights` checks rights."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.security.rules import CLUSTER
from kafkacodec.broker.state.access import ANY_NAME
from kafkacodec.broker.state.hosts import subnet
from kafkacodec.net.service import CLOSE
from kafkacodec.protocol.terms import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["create_acls", "delete_acls", "describe_acls"]

_NO_AUTHORIZER: Final = "No Authorizer is configured."
_ANY: Final = 1
_LITERAL, _PREFIXED, _MATCH = PATTERNS["literal"], PATTERNS["prefixed"], PATTERNS["match"]
_FIELDS: Final = (
    "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type",
)  # fmt: skip
_CODES: Final = (
    "resource_type", "resource_pattern_type", "resource_type_filter", "pattern_type_filter", "operation",
    "permission_type",
)  # fmt: skip
_KINDS: Final = frozenset(RESOURCES.values()) - {_ANY}
_OPERATIONS: Final = frozenset(OPERATIONS.values()) - {_ANY}


def describe_acls(node: Node, request: Request) -> Any:
    """Describe the entries that a filter matches, by resource."""
    if _is_unknown(request.message):
        return CLOSE
    response = messages.DescribeAclsResponse()
    if not node.authorizes:
        response.error_code, response.error_message = errors.SECURITY_DISABLED, _NO_AUTHORIZER
        return response
    resources: dict[tuple[Any, ...], Any] = {}
    for entry in node.catalog.access.entries.values():
        if _matches(entry, request.message):
            key = (entry.resource_type, entry.resource_name, entry.pattern_type)
            row = resources.get(key)
            if row is None:
                row = resources[key] = response.DescribeAclsResource(
                    resource_type=key[0], resource_name=key[1], pattern_type=key[2]
                )
            made = response.AclDescription(principal=entry.principal, host=entry.host, operation=entry.operation)
            made.permission_type = entry.permission_type
            row.acls.append(made)
    response.resources = list(resources.values())
    return response


def create_acls(node: Node, request: Request) -> Any:
    """Create entries. Existing ones stay."""
    if any(map(_is_unknown, request.message.creations)):
        return CLOSE
    response = messages.CreateAclsResponse()
    known = {_values(entry) for entry in node.catalog.access.entries.values()}
    fails = any(map(_is_filter, request.message.creations))
    records = []
    for creation in request.message.creations:
        row = response.AclCreationResult(error_message="")  # Kafka's answer for a created entry
        response.results.append(row)
        wrong = _wrong(creation)
        if not node.authorizes:
            row.error_code, row.error_message = errors.SECURITY_DISABLED, _NO_AUTHORIZER
        elif fails:
            row.error_code, row.error_message = errors.UNKNOWN_SERVER_ERROR, None
        elif wrong:
            row.error_code, row.error_message = errors.INVALID_REQUEST, wrong
        else:
            entry = messages.AccessControlEntryRecord(
                id=uuid.uuid4(), resource_type=creation.resource_type, resource_name=creation.resource_name,
                pattern_type=creation.resource_pattern_type, principal=creation.principal, host=creation.host,
                operation=creation.operation, permission_type=creation.permission_type,
            )  # fmt: skip
            if _values(entry) not in known:
                known.add(_values(entry))
                records.append(node.catalog.acl(entry))
    return node.change_rows(records, request, response, response.results)


def delete_acls(node: Node, request: Request) -> Any:
    """Remove the entries that filters match."""
    if any(map(_is_unknown, request.message.filters)):
        return CLOSE
    response = messages.DeleteAclsResponse()
    gone: set[uuid.UUID] = set()
    for wanted in request.message.filters:
        row = response.DeleteAclsFilterResult(error_message=None)
        response.filter_results.append(row)
        if not node.authorizes:
            row.error_code, row.error_message = errors.SECURITY_DISABLED, _NO_AUTHORIZER
            continue
        if unknown := _unknown_part(wanted):
            row.error_code, row.error_message = errors.INVALID_REQUEST, unknown
            continue
        for entry in node.catalog.access.entries.values():
            if _matches(entry, wanted):
                gone.add(entry.id)
                made = response.DeleteAclsMatchingAcl(error_message=None)
                for name in _FIELDS:
                    setattr(made, name, getattr(entry, name))
                row.matching_acls.append(made)
    records = [node.catalog.acl(messages.RemoveAccessControlEntryRecord(id=entry)) for entry in gone]
    return node.change_rows(records, request, response, response.filter_results)


def _is_unknown(asked: Any) -> bool:
    """Whether a code is 0, which Kafka takes for a damaged request."""
    return not all(getattr(asked, name, True) for name in _CODES)


def _unknown_part(wanted: Any) -> str | None:
    """What Kafka does not know of a filter for entries to delete; such filters describe nothing."""
    if wanted.resource_type_filter not in {_ANY, *_KINDS} or wanted.pattern_type_filter not in PATTERNS.values():
        return "unknown type of a resource or of a pattern"
    if wanted.operation not in {_ANY, *_OPERATIONS} or wanted.permission_type not in PERMISSIONS.values():
        return "unknown operation or permission"
    return None


def _values(entry: Any) -> tuple[Any, ...]:
    return tuple(getattr(entry, name) for name in _FIELDS)


def _is_filter(creation: Any) -> bool:
    """Whether an entry has values that only filters may have: Kafka refuses the whole request then."""
    pattern = creation.resource_pattern_type in (_ANY, _MATCH)
    return pattern or _ANY in (creation.resource_type, creation.operation, creation.permission_type)


def _wrong(creation: Any) -> str | None:
    """Why an entry cannot be made."""
    if creation.resource_type not in _KINDS:
        return "unknown type of a resource"
    if creation.resource_type == RESOURCES["cluster"] and creation.resource_name != CLUSTER:
        return f"the only valid name for the CLUSTER resource is {CLUSTER}"
    if creation.resource_pattern_type not in (_LITERAL, _PREFIXED):
        return "unknown type of a pattern"
    if not creation.resource_name:
        return "the name of the resource is empty"
    if creation.operation not in _OPERATIONS:
        return "unknown operation"
    if creation.permission_type not in (PERMISSIONS["allow"], PERMISSIONS["deny"]):
        return "unknown permission"
    if not creation.host:
        return "the host is empty"
    try:
        subnet(creation.host)
    except ValueError as error:
        return f"the host {error}"
    return None if ":" in creation.principal else "the principal has no colon between its type and its name"


def _matches(entry: Any, wanted: Any) -> bool:
    """Whether a filter matches an entry."""
    if wanted.resource_type_filter not in (_ANY, entry.resource_type):
        return False
    name, pattern = wanted.resource_name_filter, wanted.pattern_type_filter
    if pattern == _MATCH:
        if name is not None and not _applies(entry, name):
            return False
    elif pattern not in (_ANY, entry.pattern_type) or name not in (None, entry.resource_name):
        return False
    return (
        wanted.principal_filter in (None, entry.principal)
        and wanted.host_filter in (None, entry.host)
        and wanted.operation in (_ANY, entry.operation)
        and wanted.permission_type in (_ANY, entry.permission_type)
    )


def _applies(entry: Any, name: str) -> bool:
    if entry.pattern_type == _PREFIXED:
        return name.startswith(entry.resource_name)
    return entry.resource_name in (name, ANY_NAME)
