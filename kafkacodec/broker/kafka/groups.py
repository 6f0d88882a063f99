"""Requests to a coordinator's machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacodec.broker.kafka.node import GROUP_OPERATIONS
from kafkacodec.broker.state.machine import Client
from kafkacodec.net.service import Effect

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["ask", "client_of", "describe_groups"]


def ask(node: Node, request: Request) -> Any:
    """Pass a request to the machine of its API, after creating its topic."""
    machine = node.machines[request.key]

    def asked() -> Effect:
        effect = machine.receive(request.message, request.version, client_of(request), request.to, request.now)
        return node.routed(machine, effect)

    return node.with_topic(machine.topic, asked, request.now)


def describe_groups(node: Node, request: Request) -> Any:
    """Describe groups, on request with the allowed operations: all, as there is no authorizer."""
    machine = node.machines[request.key]

    def asked() -> Effect:
        effect = machine.receive(request.message, request.version, client_of(request), request.to, request.now)
        if request.message.include_authorized_operations:
            for row in (row for reply in effect.replies for row in reply.response.groups if not row.error_code):
                row.authorized_operations = GROUP_OPERATIONS
        return node.routed(machine, effect)

    return node.with_topic(machine.topic, asked, request.now)


def client_of(request: Request) -> Client:
    """Return the client, as groups show it."""
    return Client(request.client_id or "", f"/{request.session.host}")
