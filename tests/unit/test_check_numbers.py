"""The check for API keys and error codes that are written as numbers, on small packages."""

from pathlib import Path

import pytest

from tools.check_numbers import main


def checked(root: Path, line: str, place: str = "client/a.py") -> int:
    path = root / "kafkacodec" / place
    path.parent.mkdir(parents=True)
    path.write_text(f"# before\n{line}\n")
    return main(root)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("_DESCRIBE: Final = 32", "keys.DESCRIBE_CONFIGS"),
        ("_JOIN, _SYNC = keys.JOIN_GROUP, 14", "keys.SYNC_GROUP"),
        ("_UNKNOWN_TOPIC = 3", "errors.UNKNOWN_TOPIC_OR_PARTITION"),
        ("_CONCURRENT = 51", "errors.CONCURRENT_TRANSACTIONS"),
        ("if reason.code == 90: pass", "errors.PRODUCER_FENCED"),
        ("if found.code in (0, 46): pass", "errors.DUPLICATE_SEQUENCE_NUMBER"),
        ("api_key = 18", "keys.API_VERSIONS"),
        ("lost = api_key in frozenset({11})", "keys.JOIN_GROUP"),
        ("Response(error_code=35)", "errors.UNSUPPORTED_VERSION"),
        ("raise error(16)()", "errors.NOT_COORDINATOR"),
        ("messages.by_key(1)", "keys.FETCH"),
        ("messages.APIS[61]", "keys.DESCRIBE_PRODUCERS"),
    ],
)
def test_numbers_that_have_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, name: str) -> None:
    assert checked(tmp_path, line) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("kafkacodec/client/a.py:2: ")
    assert name in first


@pytest.mark.parametrize(
    "line",
    [
        "_DESCRIBE_VERSION = 3",
        "_SIZE = 4",
        "_MOST = 32",
        "if reason.code == errors.PRODUCER_FENCED: pass",
        "if found.code == 0 or message.error_code != -1: pass",
        "error_code = found.code",
        "code = code + 1",
        "if version >= 11: pass",
        "raise error(code)",
    ],
)
def test_other_numbers(tmp_path: Path, line: str) -> None:
    assert checked(tmp_path, line) == 0


def test_codes_of_other_protocols(tmp_path: Path) -> None:
    assert checked(tmp_path, "found = error.code == 404", "values/registry.py") == 0


def test_this_package() -> None:
    assert main() == 0
