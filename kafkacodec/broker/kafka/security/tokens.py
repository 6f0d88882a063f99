"""Delegation tokens (KIP-48, KIP-373): passwords for SCRAM that expire, which users make for what works for them."""

from __future__ import annotations

import base64
import hmac
import uuid
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.security.peers import ANONYMOUS
from kafkacodec.net.service import Effect

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = [
    "TOKEN_SECRET",
    "create_delegation_token", "describe_delegation_token", "expire_delegation_token", "renew_delegation_token",
    "token_hmac",
]  # fmt: skip

_KIND: Final = "User"
TOKEN_SECRET: Final = "delegation.token.secret.key"
"""The configuration that enables tokens."""

_NAMES_REQUESTER: Final = 3


def token_hmac(node: Node, token_id: str) -> bytes:
    """Return a token's password as bytes."""
    return hmac.digest(node.config.text(TOKEN_SECRET).encode(), token_id.encode(), "sha512")


def create_delegation_token(node: Node, request: Request) -> Any:
    """Make a token, for the client or for another user."""
    message, principal, now = request.message, request.peer.principal, node.clock()
    owner = f"{message.owner_principal_type}:{message.owner_principal_name}" if message.owner_principal_name else ""
    owner = owner or principal
    code = _refuses(node, request)
    if not code and any(row.principal_type != _KIND for row in message.renewers):
        code = errors.INVALID_PRINCIPAL_TYPE
    may = request.may
    if not code and owner != principal and may is not None and not may("create_tokens", "user", owner):
        code = errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    response = messages.CreateDelegationTokenResponse(error_code=code)
    response.principal_type, _, response.principal_name = owner.partition(":")
    if request.version >= _NAMES_REQUESTER:
        response.token_requester_principal_type, _, response.token_requester_principal_name = principal.partition(":")
    if code:
        response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = -1
        return response
    longest = node.config.number("delegation.token.max.lifetime.ms")
    wanted = message.max_lifetime_ms
    record = messages.DelegationTokenRecord(
        owner=owner, requester=principal, issue_timestamp=now,
        max_timestamp=now + (min(wanted, longest) if wanted > 0 else longest),
        token_id=base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode(),
    )  # fmt: skip
    record.renewers = [f"{row.principal_type}:{row.principal_name}" for row in message.renewers]
    record.expiration_timestamp = _expiry(node, record, -1, now)
    response.issue_timestamp_ms, response.max_timestamp_ms = now, record.max_timestamp
    response.expiry_timestamp_ms, response.token_id = record.expiration_timestamp, record.token_id
    response.hmac = token_hmac(node, record.token_id)
    return node.change_rows([node.catalog.token(record)], request, response, [response])


def describe_delegation_token(node: Node, request: Request) -> Any:
    """Describe the tokens that the client may see: its own, those that it may renew, and others by a right."""
    response = messages.DescribeDelegationTokenResponse(error_code=_refuses(node, request))
    if response.error_code:
        return response
    owners, principal, may, now = request.message.owners, request.peer.principal, request.may, node.clock()
    wanted = None if owners is None else {f"{row.principal_type}:{row.principal_name}" for row in owners}
    for record in node.catalog.tokens.values():
        own = principal in (record.owner, record.requester, *record.renewers)
        sees = own or may is None or may("describe", "delegation_token", record.token_id)
        sees = sees or may("describe_tokens", "user", record.owner)
        if sees and (wanted is None or record.owner in wanted) and record.expiration_timestamp > now:
            response.tokens.append(_described(node, response, record, request.version))
    return response


def renew_delegation_token(node: Node, request: Request) -> Any:
    """Put the end of a token off, at most to the longest time that it may last."""
    return _change(node, request, messages.RenewDelegationTokenResponse(), request.message.renew_period_ms)


def expire_delegation_token(node: Node, request: Request) -> Any:
    """Set the end of a token; a negative time takes it away."""
    return _change(node, request, messages.ExpireDelegationTokenResponse(), request.message.expiry_time_period_ms)


def _change(node: Node, request: Request, response: Any, period: int) -> Any:
    response.error_code = _refuses(node, request)
    response.expiry_timestamp_ms = -1 if response.error_code else 0
    if response.error_code:
        return response
    wanted = bytes(request.message.hmac)
    tokens = node.catalog.tokens.values()
    record = next((one for one in tokens if hmac.compare_digest(token_hmac(node, one.token_id), wanted)), None)
    if record is None:
        response.error_code = errors.DELEGATION_TOKEN_NOT_FOUND
    elif request.peer.principal not in (record.owner, *record.renewers):
        response.error_code = errors.DELEGATION_TOKEN_OWNER_MISMATCH
    elif record.expiration_timestamp <= node.clock():
        response.error_code = errors.DELEGATION_TOKEN_EXPIRED
    else:
        return _changed(node, request, response, record, period)
    return response


def _changed(node: Node, request: Request, response: Any, record: Any, period: int) -> Effect:
    now = node.clock()
    if period < 0 and isinstance(response, messages.ExpireDelegationTokenResponse):
        response.expiry_timestamp_ms = now
        change: Any = messages.RemoveDelegationTokenRecord(token_id=record.token_id)
    else:
        change = messages.DelegationTokenRecord.from_dict(record.to_dict())
        change.expiration_timestamp = response.expiry_timestamp_ms = _expiry(node, record, period, now)
    return node.change_rows([node.catalog.token(change)], request, response, [response])


def _expiry(node: Node, record: Any, period: int, now: int) -> int:
    period = period if period >= 0 else node.config.number("delegation.token.expiry.time.ms")
    return int(min(now + period, record.max_timestamp))


def _refuses(node: Node, request: Request) -> int:
    """Refuse clients without a login, or with a login by token."""
    if request.peer.principal == ANONYMOUS or request.peer.by_token:
        return errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return errors.NONE if node.config.text(TOKEN_SECRET) else errors.DELEGATION_TOKEN_AUTH_DISABLED


def _described(node: Node, response: Any, record: Any, version: int) -> Any:
    row = response.DescribedDelegationToken(
        issue_timestamp=record.issue_timestamp, expiry_timestamp=record.expiration_timestamp,
        max_timestamp=record.max_timestamp, token_id=record.token_id, hmac=token_hmac(node, record.token_id),
    )  # fmt: skip
    row.principal_type, _, row.principal_name = record.owner.partition(":")
    if version >= _NAMES_REQUESTER:
        row.token_requester_principal_type, _, row.token_requester_principal_name = record.requester.partition(":")
    made = response.DescribedDelegationTokenRenewer
    for renewer in record.renewers:
        kind, _, name = renewer.partition(":")
        row.renewers.append(made(principal_type=kind, principal_name=name))
    return row
