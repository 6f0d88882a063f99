"""A broker of the line protocol with a clock, for tests."""

from __future__ import annotations

from typing import Any

from kafkacodec.dialects import line


class Session:
    """A broker with a clock; requests are command and arguments."""

    def __init__(self, storage: line.Storage | None = None, **config: Any) -> None:
        self.storage = storage or line.MemoryStorage()
        self.broker = line.Broker(self.storage, line.BrokerConfig(**config))
        self.now = 0
        self.id = 0
        self.asked: dict[str, str] = {}

    def send(self, command: str, args: str) -> list[line.Response]:
        self.id += 1
        self.asked[str(self.id)] = command
        replies = self.broker.receive(f"V1|{self.id}|{command}|{args}", self.now, connection=self.id)
        return [line.parse_response(reply.line, self.asked[reply.line.split("|")[1]]) for reply in replies]

    def ask(self, command: str, args: str) -> Any:
        (response,) = self.send(command, args)
        return response.fields if response.ok else response.code

    def wait(self, milliseconds: int) -> list[line.Reply]:
        self.now += milliseconds
        return self.broker.tick(self.now)
