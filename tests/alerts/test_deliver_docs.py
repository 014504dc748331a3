"""docs/alert-delivery.md tells what is so."""

import hashlib
import hmac
import json
import re
from pathlib import Path

from ettwatch_clickhouse.migrate import migrations
from ettwatch_monitor.alerts.deliver import Message, parse_delivery, signature
from ettwatch_monitor.alerts.deliver.message import as_json
from ettwatch_monitor.alerts.deliver.settings import _KEYS, _SILENCE
from ettwatch_schemas.alerts import EXAMPLE, AlertRecord
from support.delivery import T0, firing, resolved

PAGE = (Path(__file__).parents[2] / "docs" / "alert-delivery.md").read_text("utf-8")
MESSAGES = (Path(__file__).parents[2] / "docs" / "messages.md").read_text("utf-8")


def test_the_settings_shown_are_right() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert [channel.kind for channel in parse_delivery(text, "rules.yaml", {}).channels] == [
        "alertmanager",
        "slack",
        "clickhouse",
    ]


def test_every_type_and_every_key_is_told_and_no_other() -> None:
    cells = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    told = {name for cell in cells for name in re.findall(r"`([a-z_]+)`", cell)}
    columns = set(re.findall(r"^    (\w+) .* COMMENT ", _view(), re.MULTILINE))
    keys = {key for keys in _KEYS.values() for key in keys} | set(_SILENCE)
    assert told == columns | keys | set(_KEYS)


def test_every_column_of_the_view_is_told() -> None:
    columns = re.findall(r"^    (\w+) (.*) COMMENT '(.*?)',?$", _view(), re.MULTILINE)
    assert len(columns) > 20
    rows = [line for line in PAGE.splitlines() if re.match(r"\| `\w+` \| `[A-Z]", line)]
    assert rows == [f"| `{name}` | `{kind}` | {meaning} |" for name, kind, meaning in columns]


def test_the_message_shown_has_the_fields_that_messages_have() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    message = as_json(Message(firing(), T0, 0))
    assert list(json.loads(text)) == list(message)
    assert {name: type(value) for name, value in json.loads(text).items()} == {n: type(v) for n, v in message.items()}


def test_a_message_has_the_published_form_and_both_pages_show_it() -> None:
    for message in (Message(firing(), T0, 0), Message(resolved(firing(), T0 + 1), T0, 7, silenced=True)):
        assert AlertRecord.model_validate_json(json.dumps(as_json(message))).id == message.id
    assert AlertRecord.model_validate(EXAMPLE)
    section = MESSAGES.partition("## ett.alerts\n")[2].partition("\n## ")[0]
    rows = [f"| `{name}` | {field.description} |" for name, field in AlertRecord.model_fields.items()]
    assert re.findall(r"^\| `.*\|$", section, re.MULTILINE) == rows
    assert [json.loads(text) for text in re.findall(r"```json\n(.*?)```", section, re.DOTALL)] == [EXAMPLE]
    assert list(as_json(Message(firing(), T0, 0))) == list(AlertRecord.model_fields)


def test_the_program_shown_takes_a_signature_and_no_other() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    def good(header: str, body: bytes) -> bool:
        names: dict[str, object] = {"header": header, "body": body, "secret": b"hush"}
        exec(program, names)
        return bool(names["good"])

    assert good(signature("hush", T0, b"{}"), b"{}")
    assert not good(signature("hush", T0, b"{}"), b"{ }")
    assert not good(signature("other", T0, b"{}"), b"{}")
    assert hmac.new(b"hush", b"1790000000.{}", hashlib.sha256).hexdigest() in signature("hush", T0, b"{}")


def _view() -> str:
    (migration,) = [each for each in migrations() if each.name == "0012_alerts"]
    return migration.text.partition("CREATE OR REPLACE VIEW")[2]
