"""The golden data matches its manifest."""

from __future__ import annotations

from tests.dialect_vectors import checksums, document


def test_the_files_are_those_of_the_manifest() -> None:
    assert checksums() == document("manifest")
