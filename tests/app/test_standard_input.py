"""What commands make of a standard input that is closed or no text, and of files that cannot be read to their end."""

import subprocess
import sys
from pathlib import Path

import pytest

ETTWATCH = str(Path(sys.executable).with_name("ettwatch"))
READERS = ("advise -", "export cloudevents -", "export otlp -", "import auto - --out -", "replay -", "sql -")


def said(command: str) -> tuple[int, str]:
    """Run a shell command; return its exit code and what it said."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", READERS)
def test_a_closed_standard_input_is_told(command: str) -> None:
    code, words = said(f"{ETTWATCH} {command} <&-")
    assert code == 2
    assert "standard input is closed" in words
    assert "Traceback" not in words


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that opens and cannot be read")
@pytest.mark.parametrize("command", [reader.replace(" -", " /proc/self/mem", 1) for reader in READERS[:-1]])
def test_a_file_that_fails_while_it_is_read_is_told_by_its_name(command: str) -> None:
    code, words = said(f"{ETTWATCH} {command}")
    assert code == 2
    assert "/proc/self/mem: " in words
    assert "Input/output error" in words
    assert "Traceback" not in words
    assert "write" not in words


@pytest.mark.parametrize("query", ["- < bytes", '"$(cat bytes)"'])
def test_a_query_that_is_no_text_is_told(tmp_path: Path, query: str) -> None:
    (tmp_path / "bytes").write_bytes(b"SELECT '\xff'")
    code, words = said(f"cd {tmp_path}; {ETTWATCH} sql --data data {query}")
    assert (code, words) == (2, "Error: the query is not UTF-8 at character 8; send it in UTF-8\n")
