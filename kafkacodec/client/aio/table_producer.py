"""The methods of the producer for asyncio that send tables."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kafkacodec.client.aio.transactions import TransactionalProducer
from kafkacodec.client.driver.network import Network
from kafkacodec.client.producing._appending import FewRows
from kafkacodec.client.producing._delivery import Delivery, TableDelivery
from kafkacodec.client.producing._row_cells import parts_of
from kafkacodec.client.producing.queue import TopicQueues
from kafkacodec.errors import EncodeError

if TYPE_CHECKING:
    from kafkacodec.client.aio.tables import TableSending
    from kafkacodec.client.producing.transactions import Transaction
    from kafkacodec.moments import Moment

__all__ = ["TableProducer"]


class TableProducer(TransactionalProducer):
    """The methods of a producer for tables."""

    _network: Network | None
    _is_plain: bool

    def _check(self) -> None:
        raise NotImplementedError

    async def _append(
        self,
        begun: Transaction | None,
        topic: str,
        value: Any,
        key: Any,
        headers: Any,
        partition: int | None,
        timestamp: Moment | None,
    ) -> Delivery:
        raise NotImplementedError

    async def _room(self, topic: str, partition: int | None = None) -> TopicQueues:
        raise NotImplementedError

    async def send_columns(self, data: Any, *, topic: str | None = None) -> TableDelivery:
        """Queue the rows of an Arrow table, without a Python object per row. Needs pyarrow.

        Args:
            data: a table with the Arrow interface (pyarrow, polars, pandas, DuckDB, `RecordColumns`) and the columns
                ``key`` and ``value`` (binary or text; one may be missing), and optionally ``topic`` (text),
                ``partition`` (integer), ``timestamp`` (timestamp, or int64 in ms) and ``headers`` (list of struct of
                key and value). Others that readers of records write, such as ``offset``, are left out, and any other
                is an error. Without a partition, the hash of the key chooses one as in `send`; rows without a key go to
                one partition per 131,072 rows. Rows without a timestamp get the current time.
            topic: of all rows, if the table has no column ``topic``.

        Returns:
            The outcome of all rows; its result has the offsets per partition.

        Raises:
            EncodeError: a column is missing, unknown or of the wrong type; a row names a partition that does not exist:
                then none is queued; or a row is, compressed, larger than ``max_request_size``: then those before it may
                be. `path` names the column or the row.
            TypeError: `data` is not an Arrow table.
            ImportError: pyarrow is not installed.
            Others as `send`.
        """
        if self._is_plain and self._network is not None:
            self._check()
            if (rows := self._queues.few_rows(topic, data)) is not None:
                return await self._add_rows(rows, self._check_transaction())
        await self.start()
        begun = self._check_transaction()
        table = self._table(data, topic)
        await self._prepare(table)
        if (rows := table.few_rows()) is not None:
            return await self._add_rows(rows, begun)
        try:
            for batch in table.batches():
                if self._queues.full:
                    await self._room(batch.topic_name)
                with self._queues.lock:
                    self._check_transaction(begun)
                    enough = table.queue(batch)
                if enough:
                    self._wake()
                    await asyncio.sleep(0)
        finally:
            if table.has_batches:
                self._wake()
        await asyncio.sleep(0)
        return table.finish()

    async def _add_rows(self, rows: FewRows, begun: Transaction | None) -> TableDelivery:
        """Add rows to batches, and start batches for those that have no open one."""
        while True:
            with self._queues.lock:
                self._check_transaction(begun)
                if rows.add():
                    return rows.finish()
            key, value = rows.pair()
            try:
                rows.took(await self._append(begun, rows.topic, value, key, rows.headers, rows.partition, None))
            except EncodeError as error:
                raise rows.located(error) from None

    def _rows(self, data: Any, topic: str, partition: int | None, headers: Any) -> FewRows:
        """Keys and values with the same headers and, unless it is None, the same partition, however many there are."""
        parts = parts_of(data)
        if parts is None:
            raise TypeError("the rows have more than a key and a value")
        return FewRows(self._queues, topic, parts, partition, headers)

    def _table(self, data: Any, topic: str | None) -> TableSending:
        """A table in progress."""
        from kafkacodec.client.aio.tables import TableSending  # not needed for records

        return TableSending(self._queues, self._settings, data, topic)

    async def _meet(self, topics: Iterable[str]) -> None:
        """Wait until topics are known and there is memory; ask for new topics together."""
        assert self._network is not None
        self._network.cluster.want([name for name in topics if self._queues.topic(name) is None])
        for name in topics:
            await self._room(name)

    async def _prepare(self, table: TableSending) -> None:
        """Wait until all topics of a table are known and there is memory. Raises if a partition does not exist."""
        await self._meet(table.topics)
        for name, number in table.missing().items():
            await self._room(name, number)
        table.check_partitions()
