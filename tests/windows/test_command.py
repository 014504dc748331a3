"""`ettwatch windows` where it cannot begin: one line, exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest

ETTWATCH = str(Path(sys.executable).with_name("ettwatch"))


def refused(*options: str, **env: str) -> str:
    """What it says, in its one line."""
    command = [ETTWATCH, "windows", "--web", "off", *options]
    done = subprocess.run(command, env={"PATH": "/usr/bin", **env}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line.removeprefix("Error: ")


def test_no_broker_is_named() -> None:
    assert refused().startswith("no Kafka broker is named; give --bootstrap")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--lengths", "4m"), "--lengths (ETTWATCH_WINDOWS): '4m'"),
        (("--correct-for", "90m"), "--correct-for (ETTWATCH_WINDOWS_CORRECT): '90m'"),
        (("--wait", "0"), "--wait (ETTWATCH_WINDOWS_WAIT): '0'"),
        (("--snapshot-every", "soon"), "--snapshot-every (ETTWATCH_WINDOWS_SNAPSHOT): 'soon'"),
        (("--owners", "/nowhere.yaml"), "cannot read the ownership file /nowhere.yaml"),
    ],
)
def test_settings_that_cannot_be(options: tuple[str, ...], said: str) -> None:
    assert refused("--bootstrap", "127.0.0.1:1", *options).startswith(said)


def test_an_ownership_file_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "owners.yaml").write_text("owners:\n  no_such_component: {team: a}\n")
    assert "owners.yaml" in refused("--bootstrap", "127.0.0.1:1", "--owners", str(tmp_path / "owners.yaml"))


@pytest.mark.kafka
def test_a_topic_is_missing(kafka: str, prefix: str) -> None:
    said = refused("--bootstrap", kafka, "--prefix", prefix)
    assert said.startswith(f"the topic {prefix}.jobs is missing")
    assert "ettwatch topics create" in said
