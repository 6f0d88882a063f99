"""The check for circles of imports, on small packages."""

from pathlib import Path

import pytest

from tools.check_imports import main

TREE = {
    "kafkacodec/__init__.py": "from kafkacodec.log import b",
    "kafkacodec/log/__init__.py": "",
    "kafkacodec/log/a.py": "import kafkacodec.log.b",
    "kafkacodec/log/b.py": "from kafkacodec.values import c",
    "kafkacodec/values/__init__.py": "",
    "kafkacodec/values/c.py": "",
    "kafkacodec/values/_d.pyx": "from kafkacodec.values cimport _e",
    "kafkacodec/values/_e.pxd": "",
}

CIRCLES = {
    "at run time": {"kafkacodec/values/c.py": "from kafkacodec.log.b import x"},
    "for types": {"kafkacodec/values/c.py": "if TYPE_CHECKING:\n    from kafkacodec.log.b import (\n        x,\n    )"},
    "inside a function": {"kafkacodec/values/c.py": "def f():\n    import kafkacodec.log.a"},
    "in a stub": {
        "kafkacodec/values/c.py": "from kafkacodec.values._d import x",
        "kafkacodec/values/_d.pyi": "from kafkacodec.values.c import x",
    },
    "in Cython": {"kafkacodec/values/_e.pyx": "import re, kafkacodec.values._d as d"},
    "in declarations": {"kafkacodec/values/_e.pxd": "from kafkacodec.values._d cimport (\n    x as y,\n    z)"},
    "by a package": {"kafkacodec/values/c.py": "from kafkacodec import x"},
}


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def test_modules_of_a_package_may_import_one_another(tmp_path, capsys):
    assert main(written(tmp_path, TREE)) == 0
    assert capsys.readouterr().out.startswith("8 modules checked")


@pytest.mark.parametrize("where", CIRCLES)
def test_circles_are_found(tmp_path, capsys, where):
    assert main(written(tmp_path, TREE | CIRCLES[where])) == 1
    assert "import one another in a circle" in capsys.readouterr().out
