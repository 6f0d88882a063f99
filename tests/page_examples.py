"""Examples of documentation: blocks of Python, and the block of text after one, which it must print.

``...`` in the text stands for anything within a line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["BLOCK", "assert_printed", "program"]

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.+?)^```\n)?", re.M | re.S)
_END = "--- end of a block ---"

Blocks = Sequence[tuple[str, str]]


def program(blocks: Blocks) -> str:
    """The blocks one after the other, as one program."""
    return f"print({_END!r}, flush=True)\n".join(code for code, _ in blocks)


def assert_printed(blocks: Blocks, output: str) -> None:
    """The program has printed what the blocks are to print."""
    printed = output.split(_END + "\n")
    for (block, expected), found in zip(blocks, printed, strict=True):
        pattern = ".*".join(map(re.escape, expected.split("...")))
        assert not expected or re.fullmatch(pattern, found), f"{block}\nprints\n{found}"
