"""The check for large files and folders, on small packages."""

from pathlib import Path

import pytest

from tools.check_sizes import LINES, MODULES, main


def written(root: Path, lines: int, modules: int) -> Path:
    folder = root / "kafkacodec" / "log"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    for number in range(modules):
        (folder / f"m{number}.pyx").touch()
        (folder / f"m{number}.pyi").touch()
    (folder / "m0.pyx").write_text("pass\n" * lines)
    return root


def test_what_is_within_the_limits(tmp_path: Path) -> None:
    assert main(written(tmp_path, LINES, MODULES), ()) == 0


@pytest.mark.parametrize(
    ("lines", "modules", "name", "size"),
    [
        (LINES + 1, 1, "kafkacodec/log/m0.pyx", "501 lines, more than 500"),
        (1, MODULES + 1, "kafkacodec/log", "26 modules, more than 25"),
    ],
)
def test_what_is_too_large(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: int, modules: int, name: str, size: str
) -> None:
    root = written(tmp_path, lines, modules)
    assert main(root, ()) == 1
    assert f"{name} has {size}: split it by subject\n" in capsys.readouterr().out
    assert main(root, (name,)) == 0


def test_what_is_no_longer_too_large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(written(tmp_path, 1, 1), ("kafkacodec/log",)) == 1
    assert "kafkacodec/log is within the limits: remove it from STILL_LARGE" in capsys.readouterr().out
