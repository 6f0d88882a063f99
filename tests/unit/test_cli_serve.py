"""``kafkacodec serve`` on a terminal."""

from __future__ import annotations

from tests.terminal import on_a_terminal


def test_a_line_says_what_happens():
    command = ("serve", "--listen", "kafka://127.0.0.1:0", "--topic", "orders:3")
    code, shown = on_a_terminal(*command, kind="xterm", columns=100, until="requests/s")
    assert code == 0
    assert "0 connections, 1 topic; 0 requests/s, 0 B/s in, 0 B/s out" in shown
