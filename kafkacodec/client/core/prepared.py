"""The identity of a transaction that a producer left open, needed to end it."""

from __future__ import annotations

from kafkacodec.datatypes import NamedTuple

__all__ = ["PreparedTransaction"]


class PreparedTransaction(NamedTuple):
    """A prepared transaction (as in KIP-939): with these values, any client can commit or abort it.

    Attributes:
        transactional_id (str): the producer's transactional id.
        producer_id, producer_epoch (int): the producer's id and epoch.
        transaction_version (int): 2 if each transaction has its own epoch (KIP-890), else 1.
        is_empty (bool): whether nothing was sent in it, so that there is nothing to do.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_version: int
    is_empty: bool
