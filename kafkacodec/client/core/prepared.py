"""What it takes to end a transaction that a producer has left open."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PreparedTransaction"]


class PreparedTransaction(NamedTuple):
    """A transaction that waits for its end, which whoever knows this can decide (KIP-939's words).

    Attributes:
        transactional_id (str): of its producer.
        producer_id, producer_epoch (int): of its producer.
        transaction_version (int): 2 if each transaction has an epoch of its own (KIP-890), else 1.
        is_empty (bool): nothing was sent in it, so nothing is to be done.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_version: int
    is_empty: bool
