"""How `kafkacodec produce` notices that a record was refused."""

from types import SimpleNamespace
from typing import Any

import click
import pytest

from kafkacodec.cli.commands import produce

REFUSED = SimpleNamespace(done=lambda: True, error=RuntimeError("refused"))


def test_lines_that_come_slowly_end_with_the_next_after_one_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    now, read = [0.0], []
    pending: list[Any] = [SimpleNamespace(done=lambda: False, error=None)]

    def send(*_: Any, **__: Any) -> Any:
        return pending[0]

    def lines() -> Any:
        for number in range(100):
            read.append(number)
            yield None, b"line"
            now[0] += 1
            pending[0].done, pending[0].error = REFUSED.done, REFUSED.error

    monkeypatch.setattr(produce, "monotonic", lambda: now[0])
    sent = produce._Sent(SimpleNamespace(send=send), "orders", None)  # type: ignore[arg-type]
    with pytest.raises(click.ClickException, match="orders: record 1 and later: refused"):
        sent.records(lines(), None)
    assert read == [0, 1]
