"""What a package index is given: README with links that work there, metadata, and what `make release` asks for."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "wheels" / "package_page.py"))


@pytest.fixture(scope="module")
def release() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "wheels" / "release.py"))


def targets(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]*)\)", text)


def test_links_of_the_page_lead_somewhere(page: dict[str, Any]) -> None:
    text = page["package_page"](README, "https://github.com/someone/kafkacodec", "v9.9.9")
    assert "https://github.com/someone/kafkacodec/blob/v9.9.9/docs/python.md" in targets(text)
    assert "https://github.com/someone/kafkacodec/raw/v9.9.9/benchmarks/results/0.1.0/reading.png" in targets(text)
    assert all(target.startswith(("https://", "#")) for target in targets(text))
    prefix = "https://github.com/someone/kafkacodec/"
    for path in (target.removeprefix(prefix).split("/", 2)[2] for target in targets(text) if target.startswith(prefix)):
        assert (ROOT / path.partition("#")[0]).exists()


def test_without_an_address_there_are_no_links_and_no_images(page: dict[str, Any]) -> None:
    text = page["package_page"](README, "", "")
    assert all(target.startswith(("https://", "#")) for target in targets(text))
    assert "![" not in text
    assert "(more" not in text
    assert "\nIn Python:\n" in text
    assert text.endswith("## Read on\n\n" + page["HELP"])
    assert page["package_urls"]("", "") == {}


def test_the_page_installs_from_the_index(page: dict[str, Any]) -> None:
    lines = re.findall(r"^    (pip install .*)$", page["package_page"](README, "", ""), re.M)
    assert lines[:2] == ["pip install kafkacodec", "pip install 'kafkacodec[cli,arrow]'"]
    assert all("kafkacodec" in line for line in lines)


def test_the_page_says_nothing_of_a_checkout(page: dict[str, Any]) -> None:
    text = page["package_page"](README, "", "")
    for word in ("checkout", "C compiler", "uncompiled", "make ", "Develop", "<!--", "\n\n\n"):
        assert word not in text, word
    assert "on Linux or macOS. On Windows it runs in" in text
    assert "## Read on" in text


def test_what_a_release_lacks_is_said(release: dict[str, Any]) -> None:
    faults = release["faults"]
    assert faults("1.2.0", "# Changelog\n\n## 1.2.0, 2026-12-01\n", "") == []
    assert faults("1.2.0rc1", "## 1.2.0rc1, 2026-12-01\n", "") == []
    assert len(faults("1.2.0.dev1", "## 1.2.0, not yet released\n", " M setup.py")) == 3


def test_the_version_is_in_one_place(release: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]
    recipe = yaml.safe_load((ROOT / "wheels" / "conda" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == release["version"]()


def test_the_recipe_requires_what_the_package_requires() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[;]", need)[0].replace("isal", "python-isal") for need in project["dependencies"]}
    recipe = yaml.safe_load((ROOT / "wheels" / "conda" / "recipe.yaml").read_text())
    assert {need.replace(" ", "") for need in recipe["requirements"]["run"]} == {*wanted, "python"}
    assert f'match(python, "{project["requires-python"].replace(">=", "<")}")' in recipe["build"]["skip"]


def test_the_recipe_builds_for_other_processors_with_the_tools_of_the_build_machine() -> None:
    needs = yaml.safe_load((ROOT / "wheels" / "conda" / "recipe.yaml").read_text())["requirements"]
    (crossing,) = (need for need in needs["build"] if isinstance(need, dict))
    assert crossing["if"] == "build_platform != target_platform"
    assert {*crossing["then"]} == {*needs["host"]} - {"pip"} | {"cross-python_${{ target_platform }}"}


def test_pythons_of_the_metadata_are_those_of_wheels() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(settings["project"]["classifiers"]))
    built = [f"3.{name[3:-2]}" for name in settings["tool"]["cibuildwheel"]["build"]]
    assert named == built


def test_wheels_are_made_where_numpy_has_wheels_and_run_on_older_systems() -> None:
    linux = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]["linux"]
    # numpy's wheels for CPython 3.14 need glibc 2.27, and a test in an older image would compile numpy.
    assert {image for key, image in linux.items() if key.startswith("manylinux")} == {"manylinux_2_28"}
    assert "auditwheel repair --plat auto" in linux["repair-wheel-command"]


def test_workflows_are_yaml_with_known_jobs() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    assert {*workflow["jobs"]} == {"sdist", "wheels", "publish"}
    assert workflow["jobs"]["publish"]["permissions"] == {"id-token": "write"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_named_by_commit_and_keep_no_token(path: Path) -> None:
    text = path.read_text()
    named = re.findall(r"uses: (.*)", text)
    assert named
    assert [use for use in named if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / ".gitlab-ci.yml"], ids=lambda path: path.stem)
def test_what_workflows_run_is_there(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    text = "\n".join(line.split("#")[0] for line in path.read_text().splitlines())
    for words in re.findall(r"\bmake ((?:[a-z-]+ ?)+)", text):
        for target in words.split():
            assert re.search(rf"^(?:[a-z-]+ )*{target}(?: [a-z-]+)*:", makefile, re.M), target
    for script in re.findall(r"\bpython ([\w/]+\.py)", text):
        assert (ROOT / script).is_file()
