from typing import Any

from kafkacodec._program import Program
from kafkacodec._struct import Struct

def decode(program: Program, data: Any) -> Any: ...
def encode(program: Program, message: Struct) -> bytes: ...
