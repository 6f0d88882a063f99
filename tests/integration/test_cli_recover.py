"""``kafkacodec recover``: the copy, the report, refusals; the source stays unchanged."""

import json
import shutil

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE, run
from tests.corpus import ROOT

SOURCE = ROOT / "logs/kraft-4.1.0/none-0"


@pytest.fixture
def damaged(tmp_path):
    source = tmp_path / "data" / "none-0"
    shutil.copytree(SOURCE, source, copy_function=shutil.copyfile)
    source.chmod(0o755)
    path = min(source.glob("*.log"))
    path.write_bytes(path.read_bytes()[:300] + b"\xff" + path.read_bytes()[301:])
    return source.parent


def call(capsys, *arguments):
    return run([str(argument) for argument in arguments]), *capsys.readouterr()


def test_intact_batches_are_saved_and_losses_reported(capsys, damaged, tmp_path):
    code, out, err = call(capsys, "recover", damaged, tmp_path / "saved")
    assert code == BAD_INPUT
    assert err == f"kafkacodec: error: {damaged}: some data could not be recovered\n"
    assert out.count("at most") == 1
    assert out.count("error: ") == 1
    assert "the CRC-32C of a batch is wrong" in out
    assert " saved, " in out.splitlines()[-1]
    assert call(capsys, "verify", tmp_path / "saved")[0] == DONE
    assert call(capsys, "verify", damaged)[0] == BAD_INPUT
    code, out, _ = call(capsys, "recover", damaged, tmp_path / "again", "--json")
    assert json.loads(out) == json.loads((tmp_path / "again/recovery-report.json").read_text())


def test_refusals_are_one_line(capsys, damaged, tmp_path):
    code, out, err = call(capsys, "recover", damaged, tmp_path)
    assert (code, out) == (WRONG_USAGE, "")
    assert "overlaps the source" in err
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    code, out, err = call(capsys, "recover", damaged, tmp_path / "full")
    assert (code, out) == (BAD_INPUT, "")
    assert err == f"kafkacodec: error: {tmp_path / 'full'}: the destination is not an empty directory\n"
    assert call(capsys, "recover", tmp_path / "nowhere", tmp_path / "saved")[0] == WRONG_USAGE


def test_object_stores_are_refused(capsys, damaged, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for paths in (["s3://bucket/data", "saved"], [damaged, "s3://bucket/saved"]):
        code, out, err = call(capsys, "recover", *paths)
        assert (code, out) == (WRONG_USAGE, "")
        assert err.splitlines()[-1].endswith(": object stores are not supported here; name a path of this machine")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
