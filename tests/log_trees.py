"""Random trees of files and directories with the names that the package knows, for Hypothesis."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kafkacodec.log.formats import layout
from tests.corpus import ROOT

TIERED = ROOT.parent / "tiered"
UUID = "dlPtJqO1Sb-W-Oym9Umc5w"
SEGMENT_ID = "aaaaaaaaaaaaaaaaaaaaaA"
HEX = "0123456789abcdef" * 2

_OFFSETS = ["0" * 20, f"{3:020}", f"{120:020}", f"{2**63 - 1:020}", "9" * 20, "7"]
_SUFFIXES = [
    ".log",
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    ".kafka",
    ".rsm-manifest",
    ".indexes",
    ".checkpoint",
    ".log.swap",
    ".index.swap",
    ".log.cleaned",
    ".log.deleted",
    "-0000000001.checkpoint",
    "",
]
_FILES = [
    layout.LEADER_EPOCH_CHECKPOINT,
    layout.PARTITION_METADATA,
    *layout.OFFSET_CHECKPOINTS,
    layout.WRITE_STATE,
    "meta.properties",
    "bootstrap.checkpoint",
    "quorum-state",
    "recovery-report.json",
    ".kafka_cleanshutdown",
    ".lock",
    ".schema.log",
    "lost+found",
    "notes.txt",
]
_TOPICS = ["t", "a-0", "__consumer_offsets", "__cluster_metadata", "__transaction_state", "_schemas", UUID, "blockmgr"]
_NUMBERS = ["0", "1", "007", "2147483647", "9999999999", "99999999999", "x", ""]

_offsets, _topics, _numbers = st.sampled_from(_OFFSETS), st.sampled_from(_TOPICS), st.sampled_from(_NUMBERS)
_ids = st.sampled_from(["", f"-{SEGMENT_ID}", f"-{UUID}", f"-{layout.NOT_UPLOADED}"])
_segment_names = st.builds("{}{}{}".format, _offsets, _ids, st.sampled_from(_SUFFIXES))
file_names = st.one_of(_segment_names, _segment_names, st.sampled_from(_FILES))
directory_names = st.one_of(
    st.builds("{}-{}".format, _topics, _numbers),
    st.builds(
        "{}-{}.{}-{}".format, _topics, _numbers, st.just(HEX), st.sampled_from(["delete", "future", "stray", ""])
    ),
    st.builds("{}-{}-{}".format, st.just(UUID), _numbers, _topics),
    st.builds("{}-{}".format, _topics, st.sampled_from([UUID, "6a2c1a3e-0d3b-4b3a-8f1e-2b1e3c4d5e6f"])),
    st.sampled_from([number for number in _NUMBERS if number]),
    st.sampled_from([layout.staging_name(HEX), "lost+found", "data"]),
)


_LITERAL = {
    "empty": b"",
    "zeros": bytes(64),
    "ones": b"\xff" * 40,
    "no entries": b"0\n0\n",
    "offsets": b"0\n1\nt 0 5\n",
    "epochs": b"0\n1\n0 0\n",
    "an id": b"version: 0\ntopic_id: " + UUID.encode(),
    "an object": b"{}",
}
_PARTITIONS = [f"kraft-4.1.0/{name}-0" for name in ("txn", "none", "__consumer_offsets", "__cluster_metadata")]
_PATHS = {
    f"{path.parent.name}/{path.suffix}": path
    for root, pattern in [
        *((ROOT / "logs" / name, "*.*") for name in ["v0-0.8.2.2/lz4-0", *_PARTITIONS]),
        *((TIERED / name, "*/*/*.*") for name in ("plain", "leaders")),
    ]
    for path in sorted(root.glob(pattern), reverse=True)
    if path.suffix != ".metadata"
}
LINK, PIPE = "a link to the directory above", "a pipe"


class Content(NamedTuple):
    """What is in a file: the first bytes of one of a broker, or something else, perhaps with zeros, cut or twice."""

    name: str
    change: str = "whole"
    start: int = 0
    end: int = 0

    def data(self) -> bytes:
        """The bytes."""
        data = _LITERAL[self.name] if self.name in _LITERAL else _PATHS[self.name].read_bytes()[:20_000]
        start, end = sorted((self.start % (len(data) + 1), self.end % (len(data) + 1)))
        if self.change == "zeros":
            return data[:start] + bytes(end - start) + data[end:]
        return {"whole": data, "cut": data[:end], "begun": data[start:], "twice": data * 2}[self.change]


_names = st.sampled_from([*_LITERAL, *sorted(_PATHS), LINK, PIPE])
_changes = st.sampled_from(["whole", "whole", "cut", "zeros", "begun", "twice"])
_positions = st.integers(0, 20_000)
files = st.builds(Content, _names, _changes, _positions, _positions)


def _directory(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda one, two: one | two,
        st.dictionaries(file_names, files, max_size=5),
        st.dictionaries(directory_names, st.one_of(st.just({}), inner), max_size=3),
    )


trees = st.recursive(_directory(st.just({})), _directory, max_leaves=6)
"""Names to what they are: a `Content`, or another tree."""


def write(tree: dict[str, Any], into: Path) -> None:
    """Make the files and directories of a tree in a directory that exists."""
    for name, content in tree.items():
        path = into / name
        if isinstance(content, dict):
            path.mkdir()
            write(content, path)
        elif content.name == LINK:
            path.symlink_to("..")
        elif content.name == PIPE:
            os.mkfifo(path)
        else:
            path.write_bytes(content.data())
