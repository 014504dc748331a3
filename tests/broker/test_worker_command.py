"""`ettwatch worker` where it cannot begin: one line, exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.kafka import PASSWORD, USER, Cluster

ETTWATCH = str(Path(sys.executable).with_name("ettwatch"))


def refused(*options: str, **env: str) -> str:
    """What it says, in its one line."""
    command = [ETTWATCH, "worker", "--web", "off", *options]
    done = subprocess.run(command, env={"PATH": "/usr/bin", **env}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line.removeprefix("Error: ")


def test_no_broker_is_named() -> None:
    assert refused().startswith("no Kafka broker is named; give --bootstrap")


def test_nobody_listens() -> None:
    assert "nothing listens there" in refused("--bootstrap", "127.0.0.1:1")


def test_settings_that_cannot_be() -> None:
    assert refused("--bootstrap", "h:1", "--store", "disk").startswith("--store (ETTWATCH_STORE): 'disk' is no store")
    assert refused(ETTWATCH_KAFKA="h:1", ETTWATCH_LATENESS="soon").startswith("--lateness (ETTWATCH_LATENESS): 'soon'")
    assert "no level of the log" in refused(ETTWATCH_KAFKA="h:1", ETTWATCH_LOG_LEVEL="loud")


@pytest.mark.kafka
def test_a_topic_is_missing(kafka: str, prefix: str) -> None:
    assert f"the topic {prefix}.events is missing" in refused("--bootstrap", kafka, "--prefix", prefix)


@pytest.mark.kafka
def test_a_wrong_password(own: Cluster) -> None:
    env = {"ETTWATCH_KAFKA_SECURITY": "SASL_PLAINTEXT", "ETTWATCH_KAFKA_USER": USER}
    line = refused("--bootstrap", own.guarded, **env, ETTWATCH_KAFKA_PASSWORD="not-the-one")
    assert f"they do not let '{USER}' in" in line
    assert "not-the-one" not in line
    assert "is missing" in refused("--bootstrap", own.guarded, **env, ETTWATCH_KAFKA_PASSWORD=PASSWORD)


@pytest.mark.kafka
def test_too_few_partitions(kafka: str, prefix: str) -> None:
    made = [ETTWATCH, "topics", "create", "--bootstrap", kafka, "--prefix", prefix, "--replication", "1"]
    subprocess.run([*made, "--partitions", "2"], check=True, capture_output=True, timeout=60)
    assert "wanted: at least 3" in refused("--bootstrap", kafka, "--prefix", prefix, "--partitions", "3")
