"""The limits of live contests: they do their work with a broker, and are lines in plots."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import lz4.block
import lz4.frame
import pytest

import kafkacodec as kc
from benchmarks import broker_load, compiled, live, live_latency, live_limits, live_sends, live_waits, plots

RECORDS = 1000
needs_a_compiler = pytest.mark.skipif(compiled.absent() is not None, reason="needs a C compiler and Python's headers")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A broker; answers to Fetch have a fifth of what is asked for, and batches of tables a fourth."""
    monkeypatch.setattr(live_limits, "RECORDS", RECORDS)
    monkeypatch.setattr(live_limits, "PARTITION_FETCH_BYTES", RECORDS * 20)
    monkeypatch.setattr(live_limits, "BATCH_BYTES", RECORDS * 30)
    with kc.broker.serve(topics=["t"]) as broker:
        yield broker.bootstrap_servers


def end_of(server: str, topic: str) -> int:
    with kc.client.Consumer(bootstrap_servers=server) as consumer:
        return consumer.end_offsets([(topic, 0)])[topic, 0]


@pytest.mark.parametrize("codec", live.CODECS)
def test_answers_are_received_to_the_end_and_checked(
    server: str, codec: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with kc.client.Producer(server, compression_type=codec, batch_size=4000) as producer:
        for number in range(RECORDS):
            producer.send("t", bytes(100), key=b"%d" % number)
    checked, decompressed = list[int](), list[bytes]()
    scan, decompress = kc.scan, lz4.frame.decompress

    def scanned(data: Any, **options: Any) -> Any:
        headers = scan(data, **options)
        if options.get("verify_crc", True):
            checked.append(len(headers))
        return headers

    def noted(payload: bytes) -> bytes:
        decompressed.append(decompress(payload))
        return decompressed[-1]

    monkeypatch.setattr(kc, "scan", scanned)
    monkeypatch.setattr(lz4.frame, "decompress", noted)
    live_limits.receive(server, "t", codec)
    records, processor, wall = map(float, capsys.readouterr().out.split())
    assert records == RECORDS
    assert min(processor, wall) > 0
    assert sum(checked) > RECORDS // 40
    assert len(decompressed) == (sum(checked) if codec == "lz4" else 0)
    assert all(bytes(100) in found for found in decompressed)


def test_broken_answers_are_not_measured(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with kc.client.Producer(server) as producer:
        producer.send("t", b"x")
    monkeypatch.setattr(live_limits, "RECORDS", 1)
    receive = live_limits.Line.receive

    def damaged(line: live_limits.Line) -> memoryview:
        answer = receive(line)
        answer[-1] ^= 1
        return answer

    monkeypatch.setattr(live_limits.Line, "receive", damaged)
    with pytest.raises(RuntimeError, match="another checksum"):
        live_limits.receive(server, "t", "none")


@pytest.mark.parametrize("codec", live.CODECS)
def test_as_many_records_are_written_as_are_counted(
    server: str, codec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    live_limits.write(server, "new", codec)
    records = int(capsys.readouterr().out.split()[0])
    assert RECORDS * 0.7 < records <= RECORDS
    assert end_of(server, "new") == records


def test_the_library_of_lz4_compresses_every_block() -> None:
    content = bytes(range(256)) * 2000 + b"end"
    blocks = [content[at : at + (256 << 10)] for at in range(0, len(content), 256 << 10)]
    assert live_limits.compressing(content)() == sum(len(lz4.block.compress(one, store_size=False)) for one in blocks)


def test_single_requests_are_answered_one_by_one(
    server: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_waits, "COUNT", 5)
    monkeypatch.setattr(live_waits, "WARM_UP", 1)
    monkeypatch.setattr(live_latency, "COUNT", 10)
    for number, client in enumerate(live_latency.ALONE):
        live_waits.CLIENTS[client]["send and wait"](server, f"waited-{number}")
        assert capsys.readouterr().out.split()[0] == "5"
        assert end_of(server, f"waited-{number}") == 7  # and one that is checked
        assert len(live_latency.measure(client, "1 in flight", server, f"late-{number}")) == 10
        assert end_of(server, f"late-{number}") == 12


def test_refused_requests_are_not_measured(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_limits, "_of_one", lambda topic: broker_load.produce_frame("other", b"x" * 70))
    with pytest.raises(RuntimeError, match="producing: error"), live_limits.requests(server, "new"):
        pass

    async def on_a_loop() -> None:
        async with live_limits.requests_of_loop(server, "new"):
            pass

    with pytest.raises(RuntimeError, match="producing: error"):
        asyncio.run(on_a_loop())


@needs_a_compiler
@pytest.mark.parametrize("shape", live_sends.SHAPES)
def test_calls_are_kept_until_the_end(
    shape: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(compiled, "KEPT", tmp_path)
    held: list[int] = []
    keeper = live_limits.keeper()

    class Keeps:
        send = keeper.send

        @staticmethod
        def flush() -> None:
            held.append(keeper.flush())

    monkeypatch.setattr(live_sends, "keeper", Keeps)
    live_sends.CLIENTS[live_limits.KEEPING]("", "t", shape, 80)
    assert capsys.readouterr().out.split()[0] == "80"
    assert held == [80 * {"value": 2, "headers": 4, "callback": 4}.get(shape, 3)]


def test_limits_are_lines_in_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Any] = []
    monkeypatch.setattr(plots, "png", lambda figure: figures.append(figure) or b"")
    rates = {"ours": 2e6, "peer": 1e6, "limit": 4e6}
    plots.points("cpu", "records", {"none": rates}, {}, ["ours", "peer"], ["ours"], limits=["limit", "absent"])
    classes = {name: {20: 90, 25: 10} for name in rates}
    plots.calls("cpu", "by the clock", {"one": classes}, ["ours"], ["limit"])
    points, calls = (figure.axes[0] for figure in figures)
    across = next(line for line in points.lines if line.get_label() == "limit")
    assert list(across.get_xdata()) == [4, 4]
    assert across.get_linestyle() == "--"
    labels = [text.get_text() for text in calls.get_legend().get_texts()]
    assert [label.split(":")[0] for label in labels] == ["ours", "peer", "limit"]
    filled = [patch for patch in calls.patches if patch.get_fill()]
    assert len(filled) == 2
