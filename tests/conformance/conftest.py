"""The files of these tests are in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory_files import temporary_directory


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with temporary_directory() as directory:
        yield Path(directory)
