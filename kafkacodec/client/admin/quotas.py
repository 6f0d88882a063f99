"""Quotas of clients: describe and alter (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from kafkacodec import messages
from kafkacodec.arguments import one_of
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import Operations, anywhere, as_rows
from kafkacodec.client.checks import mapping
from kafkacodec.client.core.calls import Answer
from kafkacodec.errors import BrokerError
from kafkacodec.messages.keys import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS

__all__ = ["QuotaEntity", "QuotaEntityType", "QuotaOperations"]

QuotaEntityType = Literal["user", "client-id", "ip"]
QuotaEntity: TypeAlias = tuple[tuple[QuotaEntityType, str | None], ...]
"""The entity of a quota: pairs of type and name, such as ``(("user", "alice"), ("client-id", None))``. The name None is
the default for all names without their own quota."""

_TYPES: Final = ("user", "client-id", "ip")
_EXACT, _DEFAULT, _ANY = range(3)


class QuotaOperations(Operations):
    """The calls on quotas."""

    @as_rows(float, keys={"entity": dict[str, str | None]}, inner={"quota": str}, cell="value")
    async def describe_client_quotas(
        self,
        entity: Mapping[QuotaEntityType, str | None] | None = None,
        *,
        types: Iterable[QuotaEntityType] = (),
        strict: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Describe quotas by entity, such as ``producer_byte_rate`` in bytes per second (Kafka 2.6 and later).

        Args:
            entity: only entities with these names by type; None is the default of a type.
            types: only entities that have these types, with any name.
            strict: leave out entities that have other types as well.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.
        """
        component = messages.DescribeClientQuotasRequest.ComponentData
        components = [
            component(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
            for kind, name in _checked((entity or {}).items())
        ]
        components += [
            component(entity_type=kind, match_type=_ANY, match=None)
            for kind, _ in _checked((kind, None) for kind in types)
        ]

        def request(keys: list[str], version: int) -> Any:
            return messages.DescribeClientQuotasRequest(components=components, strict=strict)

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, dict[QuotaEntity, Any] | BrokerError]]:
            found = {
                _entity(entry): {value.key: value.value for value in entry.values}
                for entry in answer.message.entries or ()
            }
            yield keys[0], refusal(answer.message.error_code, answer.message.error_message) or found

        ask = Ask(api_key=DESCRIBE_CLIENT_QUOTAS, request=request, read=read, place=anywhere)
        return await self._one(ask, "", timeout_ms)

    async def alter_client_quotas(
        self,
        quotas: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Set or remove quotas of clients (Kafka 2.6 and later).

        Args:
            quotas: the new values by entity and name; None removes one. Names are ``producer_byte_rate``,
                ``consumer_byte_rate``, ``request_percentage``, ``controller_mutation_rate`` and
                ``connection_creation_rate``.
            validate_only: only check whether the change is possible.
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by entity, such as InvalidRequestError.
        """
        wanted: dict[QuotaEntity, Any] = {
            tuple(sorted(_checked(key))): values for key, values in mapping("quotas", quotas).items()
        }

        def request(keys: list[QuotaEntity], version: int) -> Any:
            new = messages.AlterClientQuotasRequest
            entries = [
                new.EntryData(
                    entity=[new.EntityData(entity_type=kind, entity_name=name) for kind, name in key],
                    ops=[
                        new.OpData(key=name, value=0.0 if value is None else float(value), remove=value is None)
                        for name, value in wanted[key].items()
                    ],
                )
                for key in keys
            ]
            return new(entries=entries, validate_only=validate_only)

        def read(keys: list[QuotaEntity], answer: Answer) -> Iterable[tuple[QuotaEntity, BrokerError | None]]:
            for entry in answer.message.entries:
                yield _entity(entry), refusal(entry.error_code, entry.error_message)

        ask = Ask(api_key=ALTER_CLIENT_QUOTAS, request=request, read=read)
        await self._each(ask, wanted, timeout_ms, "quotas were not altered")


def _checked(parts: Iterable[Any]) -> list[tuple[Any, str | None]]:
    found: list[Any] = list(parts)
    if not all(isinstance(part, tuple) and len(part) == 2 for part in found):
        raise TypeError(f"an entity is a tuple of pairs such as (('user', 'alice'),), not {parts!r}")
    for kind, _ in found:
        one_of("the type of a quota's entity", kind, _TYPES)
    return found


def _entity(entry: Any) -> QuotaEntity:
    parts = ((part.entity_type, part.entity_name) for part in entry.entity)
    return tuple(sorted(parts, key=lambda part: (part[0], part[1] or "")))
