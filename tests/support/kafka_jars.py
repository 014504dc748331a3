"""Apache Kafka's own jars, fetched once with Maven into a folder of the user's cache."""

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

VERSION: Final = "4.3.1"
"""The Kafka that the tests run on unless ETTWATCH_TEST_KAFKA_VERSION names another (3.9 or newer)."""

_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies"
_FETCH_S: Final = 600
_MISSING_JAVA: Final = "needs Java 17 or newer: install a JRE (Debian, Ubuntu: apt-get install openjdk-17-jre-headless)"
_MISSING_MAVEN: Final = "needs Maven to fetch Kafka's jars once (Debian, Ubuntu: apt-get install maven)"


class KafkaUnavailable(RuntimeError):
    """No Kafka can be had here. The message says why, and what would help."""


def version() -> str:
    """The version of Kafka to run."""
    return os.environ.get("ETTWATCH_TEST_KAFKA_VERSION") or VERSION


def java() -> str:
    """The path of a Java that can run Kafka. Raises KafkaUnavailable where there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else None
    found = found or shutil.which("java")
    if found is None:
        raise KafkaUnavailable(_MISSING_JAVA)
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    number = re.search(r'version "(?:1\.)?(\d+)', said)
    if number is None or int(number[1]) < 17:
        raise KafkaUnavailable(f"{_MISSING_JAVA}; {found} says: {said.strip() or 'nothing'}")
    return found


def jars(wanted: str | None = None) -> Path:
    """The folder with the jars of a version of Kafka; several processes may ask at once, one fetches.

    Raises KafkaUnavailable where they are not there and cannot be fetched.
    """
    wanted = wanted or version()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ettwatch" / "kafka"
    folder = cache / wanted
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{wanted}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            part = cache / f"{wanted}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            _fetch(wanted, part)
            (part / "jars").rename(folder)
            shutil.rmtree(part)
    return folder


def _fetch(wanted: str, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable(_MISSING_MAVEN)
    (folder / "pom.xml").write_text(_pom(wanted))
    command = [maven, "-q", "-B", _COPY, "-DincludeScope=runtime", "-DoutputDirectory=jars"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=_FETCH_S)
    except subprocess.TimeoutExpired:
        raise KafkaUnavailable(
            f"Maven did not fetch Kafka {wanted} within {_FETCH_S} s: is the network slow?"
        ) from None
    if done.returncode != 0:
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "[ERROR]" in line]
        why = errors[0].partition("[ERROR] ")[2] if errors else f"exit code {done.returncode}"
        raise KafkaUnavailable(
            f"Maven cannot fetch Kafka {wanted} (is there a network, and such a version?): {why[:400]}"
        )


def _pom(wanted: str) -> str:
    """Kafka, and a logger that it leaves to its user: the simplest one. Kafka 3 wants its old one besides."""
    needs = [("org.apache.kafka", "kafka_2.13", wanted), ("org.slf4j", "slf4j-simple", "1.7.36")]
    if wanted.startswith("3."):
        needs.append(("ch.qos.reload4j", "reload4j", "1.2.25"))
    listed = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version></dependency>"
        for group, name, number in needs
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>kafka</artifactId>"
        f"<version>1</version><dependencies>{listed}</dependencies></project>\n"
    )
