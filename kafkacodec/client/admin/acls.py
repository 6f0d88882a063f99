"""Access control lists: create, describe, delete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkacodec import messages
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import Operations, anywhere, as_rows
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.errors import BrokerError, ItemErrors
from kafkacodec.messages.keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from kafkacodec.protocol.terms import (
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    RESOURCES,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
    code_of,
    word,
)
from kafkacodec.signatures import suggests_arguments

__all__ = ["Acl", "AclFilter", "AclOperations"]

_PATTERNS_VERSION = 1  # before it, all names are literal


class Acl(NamedTuple):
    """One rule: allows or denies a principal an operation on resources.

    `principal` has a form like ``"User:alice"``; `host` is an address or ``"*"``. The resource of type ``"cluster"``
    is named ``"kafka-cluster"``.
    """

    resource_type: ResourceType
    resource_name: str
    principal: str
    operation: AclOperation
    permission: PermissionType = "allow"
    host: str = "*"
    pattern_type: PatternType = "literal"


@suggests_arguments
@dataclass(frozen=True)
class AclFilter:
    """A filter for the rules to describe or delete; the default matches all of them.

    With the pattern type ``"match"``, a name matches every rule that applies to it.
    """

    resource_type: ResourceType = "any"
    resource_name: str | None = None
    principal: str | None = None
    operation: AclOperation = "any"
    permission: PermissionType = "any"
    host: str | None = None
    pattern_type: PatternType = "any"


class AclOperations(Operations):
    """The calls on access control lists."""

    async def create_acls(self, acls: Acl | Iterable[Acl], *, timeout_ms: int | None = None) -> None:
        """Add rules. Adding an existing rule is not an error.

        Raises:
            ItemErrors: by rule, such as SecurityDisabledError, InvalidRequestError.
        """
        new = [acls] if isinstance(acls, Acl) else list(acls)
        _check("acls", new, Acl)
        codes = {acl: _codes(acl) for acl in new}
        prefixed = any(acl.pattern_type != "literal" for acl in new)

        def request(keys: list[Acl], version: int) -> Any:
            creation = messages.CreateAclsRequest.AclCreation
            return messages.CreateAclsRequest(
                creations=[
                    creation(
                        resource_type=codes[acl].resource,
                        resource_name=acl.resource_name,
                        resource_pattern_type=codes[acl].pattern,
                        principal=acl.principal,
                        host=acl.host,
                        operation=codes[acl].operation,
                        permission_type=codes[acl].permission,
                    )
                    for acl in keys
                ]
            )

        def read(keys: list[Acl], answer: Answer) -> Iterable[tuple[Acl, BrokerError | None]]:
            for acl, entry in zip(keys, answer.message.results, strict=False):
                yield acl, refusal(entry.error_code, entry.error_message)

        ask = Ask(api_key=CREATE_ACLS, request=request, read=read, place=anywhere, **_pattern_version(prefixed))
        await self._each(ask, new, timeout_ms, "ACLs were not created")

    @as_rows(Acl)
    async def describe_acls(self, acl_filter: AclFilter | None = None, *, timeout_ms: int | None = None) -> list[Acl]:
        """Describe the rules that match a filter, or all rules.

        Raises:
            BrokerError: such as SecurityDisabledError if the brokers have no authorizer.
        """
        wanted = AclFilter() if acl_filter is None else acl_filter
        _check("acl_filter", [wanted], AclFilter)

        def request(keys: list[str], version: int) -> Any:
            return messages.DescribeAclsRequest(**_filter_fields(wanted, version))

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, list[Acl] | BrokerError]]:
            message = answer.message
            found = [_acl(resource, entry) for resource in message.resources for entry in resource.acls]
            yield keys[0], refusal(message.error_code, message.error_message) or sorted(found)

        needs = _pattern_version(wanted.pattern_type in ("match", "prefixed"))
        return await self._one(
            Ask(api_key=DESCRIBE_ACLS, request=request, read=read, place=anywhere, **needs), "", timeout_ms
        )

    @as_rows(Acl)
    async def delete_acls(
        self, filters: AclFilter | Iterable[AclFilter], *, timeout_ms: int | None = None
    ) -> dict[AclFilter, list[Acl]]:
        """Delete the rules that match filters.

        Returns:
            The deleted rules of each filter.

        Raises:
            ItemErrors: by failed filter, and by rule (`Acl`) that matched but was not deleted. Its results are the
                deleted rules of the other filters.
        """
        wanted = [filters] if isinstance(filters, AclFilter) else list(filters)
        _check("filters", wanted, AclFilter)
        patterns = any(item.pattern_type in ("match", "prefixed") for item in wanted)

        def request(keys: list[AclFilter], version: int) -> Any:
            entry = messages.DeleteAclsRequest.DeleteAclsFilter
            return messages.DeleteAclsRequest(filters=[entry(**_filter_fields(key, version)) for key in keys])

        def read(
            keys: list[AclFilter], answer: Answer
        ) -> Iterable[tuple[AclFilter, tuple[list[Acl], Any] | BrokerError]]:
            for key, entry in zip(keys, answer.message.filter_results, strict=False):
                found = [(_acl(acl, acl), refusal(acl.error_code, acl.error_message)) for acl in entry.matching_acls]
                deleted = sorted(acl for acl, error in found if error is None)
                kept = {acl: error for acl, error in found if error is not None}
                yield key, refusal(entry.error_code, entry.error_message) or (deleted, kept)

        ask = Ask(api_key=DELETE_ACLS, request=request, read=read, place=anywhere, **_pattern_version(patterns))
        failed: dict[Any, Exception] = {}
        problems = []
        try:
            results = await self._each(ask, wanted, timeout_ms, "filters failed")
        except ItemErrors as refused:
            failed, results = refused.errors, refused.results
            problems.append(refused.message)
        kept = {acl: error for _, refusals in results.values() for acl, error in refusals.items()}
        deleted = {key: found for key, (found, _) in results.items()}
        if kept:
            problems.append(f"{len(kept)} ACLs were not deleted")
        if problems:
            raise ItemErrors(", ".join(problems), failed | kept, deleted)
        return deleted


class _Codes(NamedTuple):
    resource: int
    pattern: int
    operation: int
    permission: int


def _codes(acl: Acl | AclFilter) -> _Codes:
    return _Codes(
        code_of("resource_type", RESOURCES, acl.resource_type),
        code_of("pattern_type", PATTERNS, acl.pattern_type),
        code_of("operation", OPERATIONS, acl.operation),
        code_of("permission", PERMISSIONS, acl.permission),
    )


def _pattern_version(needed: bool) -> dict[str, Any]:
    return {"least": _PATTERNS_VERSION, "needs": "a pattern type"} if needed else {}


def _filter_fields(acl_filter: AclFilter, version: int) -> dict[str, Any]:
    codes = _codes(acl_filter)
    return {
        "resource_type_filter": codes.resource,
        "resource_name_filter": acl_filter.resource_name,
        "pattern_type_filter": codes.pattern if version >= _PATTERNS_VERSION else PATTERNS["literal"],
        "principal_filter": acl_filter.principal,
        "host_filter": acl_filter.host,
        "operation": codes.operation,
        "permission_type": codes.permission,
    }


def _acl(resource: Any, entry: Any) -> Acl:
    kind, operation = word(RESOURCES, resource.resource_type), word(OPERATIONS, entry.operation)
    permission, pattern = word(PERMISSIONS, entry.permission_type), word(PATTERNS, resource.pattern_type)
    words: Any = (kind, resource.resource_name, entry.principal, operation, permission, entry.host, pattern)
    return Acl(*words)


def _check(name: str, values: Iterable[object], kind: type) -> None:
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be of type {kind.__name__}, not {type(value).__name__}")
