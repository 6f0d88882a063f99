"""What an installed wheel must do with its hard dependencies alone. argv: tests/data/kafka."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import kafkacodec as kc

DATA = Path(sys.argv[1])
SEGMENT = DATA / "logs/kraft-4.1.0/none-0/00000000000000000000.log"
PACKAGE = Path(kc.__file__).parent
# Always there in an environment, or needed by a hard dependency.
AROUND = {"pip", "setuptools", "kafkacodec", "cffi", "pycparser"}


def hard_dependencies():
    requirements = importlib.metadata.requires("kafkacodec") or []
    return {r.split(">")[0].split("=")[0].strip().lower() for r in requirements if "extra ==" not in r}


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "kafkacodec.cli", *arguments], capture_output=True, text=True)


def test_comes_from_the_wheel():
    assert "site-packages" in PACKAGE.parts
    assert importlib.metadata.version("kafkacodec") == kc.__version__
    assert (PACKAGE / "py.typed").is_file()
    assert list(PACKAGE.glob("_*.pyi")), "stubs are missing"
    assert not [p for p in PACKAGE.rglob("*") if p.suffix in (".c", ".pyx", ".h")]


def test_nothing_else_is_installed():
    names = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    assert names <= hard_dependencies() | AROUND, names


def test_command_says_what_is_missing():
    finished = command("scan", str(SEGMENT))
    assert finished.returncode == 2
    assert "pip install 'kafkacodec[cli]'" in finished.stderr
    assert "Traceback" not in finished.stderr


def main():
    tests = [value for name, value in globals().items() if name.startswith("test_")]
    for test in tests:
        test()
    print(f"{len(tests)} checks of the installed wheel passed")


main()
