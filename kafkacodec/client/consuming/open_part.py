"""The fetched part that is being read, and the decoder that is open on it."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacodec.arrow._rows import cells, take
from kafkacodec.client.consuming.positions import Position
from kafkacodec.client.consuming.received import Part
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.plan import plan_of

if TYPE_CHECKING:
    from kafkacodec.records._decoder import Decoder

__all__ = ["OpenPart"]


class OpenPart:
    """Opens fetched parts one after the other, and returns them.

    An interrupt may end a step anywhere. After `recover` no part is lost, read twice or returned twice.

    Args:
        ready: the parts, taken from the left.
        settings: the consumer's.
        give_back: called with parts whose memory is no longer used.

    Attributes:
        part: the part being read; None before the first and between two parts.
        decoder: the decoder open on it; None if one must be opened at the partition's position.
    """

    def __init__(self, ready: deque[Part], settings: ConsumerSettings, give_back: Callable[[list[Part]], None]) -> None:
        self._ready = ready
        self._settings = settings
        self._give_back = give_back
        self._decoders: dict[tuple[str, ...], Decoder] = {}  # by their columns
        self._finished: list[Part] = []
        self.part: Part | None = None
        self.decoder: Decoder | None = None

    @property
    def has_data(self) -> bool:
        """Whether there is a part to read."""
        return bool(self.part or self._ready)

    def open(self, names: tuple[str, ...]) -> tuple[Part, Decoder] | None:
        """The part to read and its decoder for these columns; None if there is no part."""
        while True:
            part = self.part
            if part is None:
                try:
                    part = self.part = self._ready[0]
                    self._ready.popleft()
                except IndexError:
                    return None
            if part.current:
                break
            self.close_part()
        decoder = self._decoder(names)
        if self.decoder is not decoder:
            self.reopen()
            position = part.state.position or part.start
            first = max(position.offset, part.start.offset)
            decoder.open(part.records, aborted=part.aborted, start_offset=first, end_offset=part.state.end)
            decoder.set_place(part.state.topic, part.state.number)
            self.decoder = decoder
        return part, decoder

    def end_of(self, part: Part, decoder: Decoder, table: RecordColumns, before: int = 0) -> Position:
        """The position after the rows read from a part into a table that had `before` rows."""
        if decoder.done and decoder.fault is None and part.end is not None:
            end = part.state.end
            return part.end if part.end.offset <= end else Position(end, part.epochs.at(end - 1))
        if len(table) == before:
            return part.state.position or part.start
        count = len(table)
        last: int = cells(take(table, range(count - 1, count)), "offset")[0]  # numpy is not needed for it
        return Position(last + 1, part.epochs.at(last))

    def reopen(self) -> None:
        """Make the next `open` begin at the partition's position."""
        decoder, self.decoder = self.decoder, None
        if decoder is not None:
            decoder.close()

    def close_part(self) -> None:
        """Stop reading the part."""
        if self.part is not None:
            self.reopen()
            self._finished.append(self.part)
            self.part = None

    def keep(self, part: Part) -> None:
        """Hold a part that was read to its end until `finish`."""
        if part in self._finished:
            self._finished.remove(part)

    def finish(self, part: Part) -> None:
        """Release a part that was held, unless it is still being read."""
        if part is not self.part:
            self._finished.append(part)

    def give_back(self) -> None:
        """Return the parts that were read."""
        if self._finished:
            self._give_back(self._finished)
            self._finished = []

    def recover(self) -> None:
        """Restore a consistent state after an interrupt between any two steps, and close the part."""
        if self._ready and self._ready[0] is self.part:
            self._ready.popleft()
        self.close_part()

    def close(self) -> None:
        """Give everything back."""
        with contextlib.suppress(RuntimeError):  # another thread is still reading; it will see that this is closed
            self.close_part()
            for decoder in self._decoders.values():
                decoder.close()
        self.give_back()

    def _decoder(self, names: tuple[str, ...]) -> Decoder:
        found = self._decoders.get(names)
        if found is None:
            plan = plan_of(
                columns=names,
                verify_crc=self._settings.check_crcs,
                max_decompressed_bytes=self._settings.max_decompressed_bytes,
                place_columns=True,
            )
            found = self._decoders[names] = plan.decoder(b"")
        return found
