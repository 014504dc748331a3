"""Where no Kafka can be had, one line says why."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.kafka_jars import KafkaUnavailable, jars, java

FETCHES = """\
echo once >> "$XDG_CACHE_HOME/count"
sleep 0.5
mkdir jars && touch jars/kafka.jar
"""
FAILS = "echo '[ERROR] Could not transfer artifact: no route to host'; echo '[ERROR] more'; exit 1"
ASKS = "from support.kafka_jars import jars; print(jars('4.0.0'))"


def programs(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    """Only these programs, and those that scripts need, are there."""
    (folder / "bin").mkdir()
    for name, script in scripts.items():
        path = folder / "bin" / name
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(tmp_path, monkeypatch)
    with pytest.raises(KafkaUnavailable, match="needs Java 17 or newer"):
        java()


def test_an_old_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(tmp_path, monkeypatch, java="echo 'openjdk version \"1.8.0_392\"' >&2")
    with pytest.raises(KafkaUnavailable, match=r"needs Java 17 or newer.*1\.8\.0_392"):
        java()


def test_no_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(tmp_path, monkeypatch)
    with pytest.raises(KafkaUnavailable, match="needs Maven"):
        jars("4.0.0")


def test_no_network_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(tmp_path, monkeypatch, mvn=FAILS)
    with pytest.raises(KafkaUnavailable, match=r"cannot fetch Kafka 4\.0\.0 .*no route to host$"):
        jars("4.0.0")
    assert not (tmp_path / "ettwatch/kafka/4.0.0").exists()


def test_of_several_processes_one_fetches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(tmp_path, monkeypatch, mvn=FETCHES)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    running = [
        subprocess.Popen([sys.executable, "-c", ASKS], env=dict(os.environ), stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = {process.communicate()[0].strip() for process in running}
    assert said == {str(tmp_path / "ettwatch/kafka/4.0.0")}
    assert (tmp_path / "ettwatch/kafka/4.0.0/kafka.jar").exists()
    assert (tmp_path / "count").read_text() == "once\n"
