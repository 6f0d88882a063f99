"""aiokafka pipelines more requests than a broker's connection takes; the server stops reading while it is paused."""

import asyncio

from aiokafka.conn import create_conn
from aiokafka.protocol.metadata import MetadataRequest

from kafkacodec import messages
from kafkacodec.protocol import Connection

REQUESTS = 500
VERSIONS = {3: range(2), 18: range(1)}


class Server:
    """Answers the requests of each read, the newest first, before it reads more."""

    def __init__(self):
        self.connection = Connection("broker", max_pending=3, max_frame_size=1000, versions=VERSIONS)
        self.paused = self.most = 0
        self.finished = asyncio.Event()

    async def serve(self, reader, writer):
        while not reader.at_eof():
            waiting = self.connection.receive(await reader.read(2000))
            while waiting:
                self.most = max(self.most, self.connection.pending)
                self.paused += self.connection.paused
                for event in reversed(waiting):
                    writer.write(self.connection.send_response(event.correlation_id, self.answer(event)))
                waiting = self.connection.receive(b"")
        writer.close()
        await writer.wait_closed()
        self.finished.set()

    def answer(self, event):
        if event.api_key == 18:
            return self.connection.api_versions(event)
        topic = messages.MetadataResponse.MetadataResponseTopic(name=event.message.topics[0].name)
        return messages.MetadataResponse(topics=[topic])


async def conversation():
    server = Server()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listener:
        client = await create_conn(*listener.sockets[0].getsockname())
        sent = [client.send(MetadataRequest([f"topic-{i}"])) for i in range(REQUESTS)]
        answers = await asyncio.wait_for(asyncio.gather(*sent), 60)
        client.close()
        await asyncio.wait_for(server.finished.wait(), 60)
    return server, answers


def test_every_request_is_answered_in_order():
    server, answers = asyncio.run(conversation())
    assert [answer.topics[0][1] for answer in answers] == [f"topic-{i}" for i in range(REQUESTS)]
    assert server.most == 3
    assert server.paused > REQUESTS // 4
    assert server.connection.pending == 0
