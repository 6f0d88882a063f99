from typing_extensions import Buffer

from kafkacodec.arrow._columns import Budget
from kafkacodec.records._chunk_decoder import ChunkDecoder

def columns() -> list[str]: ...

class Decoder(ChunkDecoder):
    def __init__(
        self,
        data: Buffer,
        *,
        wanted: int,
        verify_crc: bool,
        deep: bool,
        initial_offset: int,
        limit: int,
        budget: Budget | None = None,
    ) -> None: ...

def outermost(data: Buffer, max_payload: int) -> tuple[int, int, int, bool]: ...
def encode_message(payload: Buffer, magic: int, codec: int) -> bytes: ...
