"""SCRAM credentials of users: describe, set, delete (KIP-554)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from kafkacodec import messages
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import Operations, anywhere, as_rows, several
from kafkacodec.client.checks import mapping
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import BrokerError
from kafkacodec.messages.keys import ALTER_USER_SCRAM_CREDENTIALS, DESCRIBE_USER_SCRAM_CREDENTIALS
from kafkacodec.protocol.terms import SCRAM_MECHANISMS, code_of, word
from kafkacodec.signatures import suggests_arguments

__all__ = ["ScramCredential", "ScramCredentialInfo", "ScramMechanism", "ScramOperations", "UserMechanism"]

ScramMechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_SALT_BYTES = 16


@suggests_arguments
@dataclass(frozen=True)
class ScramCredential:
    """A password to set. Brokers only get a hash of it.

    Args:
        mechanism: the SCRAM mechanism; a user may have one credential for each.
        password: the password.
        iterations: the number of hash iterations; brokers accept 4096 to 16384.
        salt: the salt. Default: random.
    """

    mechanism: ScramMechanism
    password: str = field(repr=False)
    iterations: int = 4096
    salt: bytes | None = field(default=None, repr=False)


class ScramCredentialInfo(NamedTuple):
    """A credential that a user has; brokers reveal nothing else about it."""

    mechanism: str
    iterations: int


class UserMechanism(NamedTuple):
    """A credential of a user; equal to the tuple ``(user, mechanism)``."""

    user: str
    mechanism: str

    def __str__(self) -> str:
        return f"{self.mechanism} of {self.user}"


class ScramOperations(Operations):
    """The calls on SCRAM users."""

    @as_rows(ScramCredentialInfo, keys={"user": str})
    async def describe_user_scram_credentials(
        self, users: str | Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> dict[str, list[ScramCredentialInfo]]:
        """Describe the credentials of some or all users (Kafka 2.7 and later).

        Raises:
            ItemErrors: by user, such as ResourceNotFoundError.
        """
        names = None if users is None else several("users", users)

        def request(keys: list[str | None], version: int) -> Any:
            entry = messages.DescribeUserScramCredentialsRequest.UserName
            wanted = None if names is None else [entry(name=name) for name in keys if name is not None]
            return messages.DescribeUserScramCredentialsRequest(users=wanted)

        if names is not None:
            named = Ask(api_key=DESCRIBE_USER_SCRAM_CREDENTIALS, request=request, read=_credentials, place=anywhere)
            return await self._each(named, names, timeout_ms, "users could not be described")

        def read(keys: list[None], answer: Answer) -> Iterable[tuple[None, dict[str, Any] | BrokerError]]:
            whole = refusal(answer.message.error_code, answer.message.error_message)
            yield None, whole or dict(_credentials([], answer))

        return await self._one(
            Ask(api_key=DESCRIBE_USER_SCRAM_CREDENTIALS, request=request, read=read, place=anywhere), None, timeout_ms
        )

    async def alter_user_scram_credentials(
        self,
        credentials: Mapping[str, ScramCredential | ScramMechanism | Iterable[ScramCredential | ScramMechanism]],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Set and delete credentials of users (Kafka 2.7 and later).

        Args:
            credentials: by user, a `ScramCredential` to set, a mechanism name to delete, or several of these.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ValueError: a user has two different changes of one mechanism.
            ItemErrors: by user and mechanism, such as ResourceNotFoundError, UnacceptableCredentialError.
        """
        wanted: dict[UserMechanism, ScramCredential | None] = {}
        for user, items in mapping("credentials", credentials).items():
            for item in several("credentials", items, (str, ScramCredential)):
                new = item if isinstance(item, ScramCredential) else None
                mechanism: Any = item if new is None else new.mechanism
                code_of("a mechanism", SCRAM_MECHANISMS, mechanism)
                if wanted.setdefault(UserMechanism(user, mechanism), new) != new:
                    raise ValueError(f"credentials has two different changes of {user!r}, {mechanism}")

        def request(keys: list[UserMechanism], version: int) -> Any:
            entries = [_alteration(key, wanted[key]) for key in keys]
            new = messages.AlterUserScramCredentialsRequest
            return new(
                deletions=[entry for entry in entries if isinstance(entry, new.ScramCredentialDeletion)],
                upsertions=[entry for entry in entries if isinstance(entry, new.ScramCredentialUpsertion)],
            )

        def read(keys: list[UserMechanism], answer: Answer) -> Iterable[tuple[UserMechanism, BrokerError | None]]:
            found = {entry.user: refusal(entry.error_code, entry.error_message) for entry in answer.message.results}
            return ((key, found[key.user]) for key in keys if key.user in found)

        # Brokers refuse two credentials of one user in a request.
        ask = Ask(
            api_key=ALTER_USER_SCRAM_CREDENTIALS, request=request, read=read, one_by_one=len(wanted) > len(credentials)
        )
        await self._each(ask, wanted, timeout_ms, "credentials were not altered")


def _alteration(key: UserMechanism, new: ScramCredential | None) -> Any:
    """The entry of the request that sets or deletes a credential."""
    mechanism = SCRAM_MECHANISMS[key.mechanism]
    if new is None:
        return messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=key.user, mechanism=mechanism)
    salt = os.urandom(_SALT_BYTES) if new.salt is None else new.salt
    return messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=key.user,
        mechanism=mechanism,
        iterations=new.iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(_HASHES[key.mechanism], new.password.encode(), salt, new.iterations),
    )


def _credentials(keys: Any, answer: Answer) -> Iterable[tuple[str, list[ScramCredentialInfo] | BrokerError]]:
    whole = refusal(answer.message.error_code, answer.message.error_message)
    if whole is not None:
        yield from ((key, whole) for key in keys)
        return
    for entry in answer.message.results:
        found = [
            ScramCredentialInfo(word(SCRAM_MECHANISMS, info.mechanism), info.iterations)
            for info in entry.credential_infos
        ]
        yield entry.user, refusal(entry.error_code, entry.error_message) or sorted(found)
