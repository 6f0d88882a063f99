"""Delegation tokens: create, renew, expire, describe (KIP-48). Brokers need ``delegation.token.secret.key``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.arguments import require_int
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import Operations, anywhere, as_rows, several
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import BrokerError
from kafkacodec.messages.keys import (
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
)

__all__ = ["DelegationToken", "TokenOperations"]

_OWNER_VERSION = 3  # of CreateDelegationToken
_MOST_MS: Final = 2**63 - 1


@dataclass(frozen=True)
class DelegationToken:
    """A token with which a client can log in by SCRAM in the name of its owner.

    Principals have a form like ``"User:alice"``; times are in ms since 1970.

    Attributes:
        token_id: the user name for SCRAM.
        hmac: the password for SCRAM, in base64. It also identifies the token in calls. ``repr`` leaves it out.
        owner: the principal that a client with the token has.
        requester: the principal that created it; None before Kafka 3.3.
        renewers: principals that may renew it besides the owner.
        issue_timestamp: when it was created.
        expiry_timestamp: when it expires unless it is renewed.
        max_timestamp: beyond this it cannot be renewed.
    """

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str | None
    renewers: list[str]
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int


class TokenOperations(Operations):
    """The calls on delegation tokens. Brokers refuse them to clients without authentication or with a token."""

    async def create_delegation_token(
        self,
        *,
        renewers: str | Iterable[str] = (),
        max_lifetime_ms: int | None = None,
        owner: str | None = None,
        timeout_ms: int | None = None,
    ) -> DelegationToken:
        """Create a token (Kafka 1.1 and later). Brokers learn about it from each other after the answer.

        Args:
            renewers: other principals that may renew it, such as ``"User:bob"``.
            max_lifetime_ms: how long it can be renewed. Default: the broker's ``delegation.token.max.lifetime.ms``.
            owner: the owner. Default: this client's principal; others need Kafka 3.3 and the right to create tokens.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            BrokerError: such as DelegationTokenAuthDisabledError, DelegationTokenRequestNotAllowedError.
        """
        wanted = [_parts("renewers", name) for name in several("renewers", renewers)]
        lifetime = _duration("max_lifetime_ms", max_lifetime_ms)
        owner_type, owner_name = (None, None) if owner is None else _parts("owner", owner)

        def request(keys: list[str], version: int) -> Any:
            new = messages.CreateDelegationTokenRequest
            return new(
                owner_principal_type=owner_type,
                owner_principal_name=owner_name,
                renewers=[new.CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in wanted],
                max_lifetime_ms=lifetime,
            )

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, DelegationToken | BrokerError]]:
            made = answer.message
            times = made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms
            names = [f"{kind}:{name}" for kind, name in wanted]
            yield keys[0], refusal(made.error_code) or _token(made, names, times)

        ask = Ask(
            api_key=CREATE_DELEGATION_TOKEN,
            request=request,
            read=read,
            least=_OWNER_VERSION if owner is not None else 0,
            needs="owner" if owner is not None else "",
        )
        return await self._one(ask, "", timeout_ms)

    async def renew_delegation_token(
        self, hmac: bytes, *, period_ms: int | None = None, timeout_ms: int | None = None
    ) -> int:
        """Postpone a token's expiry; returns the new time in ms since 1970 (Kafka 1.1 and later).

        Args:
            hmac: that of the token.
            period_ms: the time from now on. Default: the broker's ``delegation.token.expiry.time.ms``.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            BrokerError: such as DelegationTokenNotFoundError, DelegationTokenExpiredError,
                DelegationTokenOwnerMismatchError.
        """
        period = _duration("period_ms", period_ms)

        def request(keys: list[str], version: int) -> Any:
            return messages.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period)

        return await self._one(Ask(api_key=RENEW_DELEGATION_TOKEN, request=request, read=_expiry), "", timeout_ms)

    async def expire_delegation_token(
        self, hmac: bytes, *, period_ms: int | None = None, timeout_ms: int | None = None
    ) -> int:
        """Delete a token or change its expiry; returns the new time in ms since 1970 (Kafka 1.1 and later).

        Args:
            hmac: that of the token.
            period_ms: the time from now on. Default: delete it at once.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            BrokerError: such as DelegationTokenNotFoundError, DelegationTokenOwnerMismatchError.
        """
        period = _duration("period_ms", period_ms)

        def request(keys: list[str], version: int) -> Any:
            return messages.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period)

        return await self._one(Ask(api_key=EXPIRE_DELEGATION_TOKEN, request=request, read=_expiry), "", timeout_ms)

    @as_rows(DelegationToken)
    async def describe_delegation_tokens(
        self, owners: str | Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> list[DelegationToken]:
        """Describe the tokens that this client may see (Kafka 1.1 and later).

        Args:
            owners: only tokens of these principals. Default: all.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            BrokerError: such as DelegationTokenAuthDisabledError, DelegationTokenRequestNotAllowedError.
        """
        wanted = None if owners is None else [_parts("owners", name) for name in several("owners", owners)]

        def request(keys: list[str], version: int) -> Any:
            new = messages.DescribeDelegationTokenRequest
            entry = new.DescribeDelegationTokenOwner
            of = None if wanted is None else [entry(principal_type=kind, principal_name=name) for kind, name in wanted]
            return new(owners=of)

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, list[DelegationToken] | BrokerError]]:
            found = [
                _token(
                    entry,
                    [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in entry.renewers],
                    (entry.issue_timestamp, entry.expiry_timestamp, entry.max_timestamp),
                )
                for entry in answer.message.tokens
            ]
            yield keys[0], refusal(answer.message.error_code) or found

        return await self._one(
            Ask(api_key=DESCRIBE_DELEGATION_TOKEN, request=request, read=read, place=anywhere), "", timeout_ms
        )


def _parts(name: str, principal: Any) -> tuple[str, str]:
    """The type and name of a principal. Raises ValueError unless it has both."""
    kind, colon, who = principal.partition(":") if isinstance(principal, str) else ("", "", "")
    if not (kind and colon and who):
        raise ValueError(f"{name} must be principals such as 'User:alice', not {principal!r}")
    return kind, who


def _duration(name: str, value: int | None) -> int:
    """A time in ms for a request; -1 means the default."""
    if value is None:
        return -1
    require_int(name, value, 0, _MOST_MS)
    return value


def _expiry(keys: list[str], answer: Answer) -> Iterable[tuple[str, int | BrokerError]]:
    yield keys[0], refusal(answer.message.error_code) or answer.message.expiry_timestamp_ms


def _token(entry: Any, renewers: list[str], times: tuple[int, int, int]) -> DelegationToken:
    requester = f"{entry.token_requester_principal_type}:{entry.token_requester_principal_name}"
    owner = f"{entry.principal_type}:{entry.principal_name}"
    return DelegationToken(
        entry.token_id, bytes(entry.hmac), owner, requester if requester != ":" else None, renewers, *times
    )
