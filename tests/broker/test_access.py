"""How the brokers are reached, by variables."""

from pathlib import Path

import pytest

from ettwatch_faust import BROKER_VARIABLES, Access, BrokersError

LOGIN = {"ETTWATCH_KAFKA": "a:9092", "ETTWATCH_KAFKA_USER": "ann", "ETTWATCH_KAFKA_PASSWORD": "hush"}


def test_plain_addresses() -> None:
    access = Access.read({"ETTWATCH_KAFKA": "a:9092, [::1]:9093,b"})
    assert access.client() == {"bootstrap_servers": ["a:9092", "[::1]:9093", "b"], "security_protocol": "PLAINTEXT"}
    assert Access.read({"ETTWATCH_KAFKA": "a:9092"}, "b:1").brokers == ("b:1",)


def test_a_login_is_encrypted_unless_told_otherwise_and_is_not_shown() -> None:
    access = Access.read(LOGIN)
    assert access.client() == {
        "bootstrap_servers": ["a:9092"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "ann",
        "sasl_plain_password": "hush",
    }
    assert "hush" not in repr(access)
    assert Access.read(LOGIN | {"ETTWATCH_KAFKA_SECURITY": "sasl_plaintext"}).protocol == "SASL_PLAINTEXT"


def test_a_password_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from a file\n")
    assert Access.read(LOGIN | {"ETTWATCH_KAFKA_PASSWORD_FILE": str(file)}).password == "from a file"


def test_the_certificates(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("certificates")
    env = {"ETTWATCH_KAFKA": "a", "ETTWATCH_KAFKA_SECURITY": "SSL", "ETTWATCH_KAFKA_CA": str(file)}
    assert Access.read(env).client()["ssl_cafile"] == str(file)


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, "no Kafka broker is named"),
        ({"ETTWATCH_KAFKA": " , "}, "no Kafka broker is named"),
        ({"ETTWATCH_KAFKA": "a:x"}, "'a:x' is no address"),
        ({"ETTWATCH_KAFKA": "a:70000"}, "'a:70000' is no address"),
        ({"ETTWATCH_KAFKA": "kafka://a:1"}, "is no address"),
        ({"ETTWATCH_KAFKA": "a", "ETTWATCH_KAFKA_SECURITY": "TLS"}, "ETTWATCH_KAFKA_SECURITY='TLS' is none of"),
        ({"ETTWATCH_KAFKA": "a", "ETTWATCH_KAFKA_SECURITY": "SASL_SSL"}, "needs a login; set ETTWATCH_KAFKA_USER"),
        (LOGIN | {"ETTWATCH_KAFKA_MECHANISM": "GSSAPI"}, "is none of PLAIN, SCRAM"),
        (LOGIN | {"ETTWATCH_KAFKA_CA": "/not/there"}, r"cannot read /not/there: No such file.*ETTWATCH_KAFKA_CA"),
        (LOGIN | {"ETTWATCH_KAFKA_PASSWORD_FILE": "/not/there"}, "correct ETTWATCH_KAFKA_PASSWORD_FILE"),
    ],
)
def test_what_cannot_be_is_told(env: dict[str, str], says: str) -> None:
    with pytest.raises(BrokersError, match=says) as refused:
        Access.read(env)
    assert "\n" not in str(refused.value)
    assert "hush" not in str(refused.value)


def test_every_variable_that_is_read_is_listed() -> None:
    class Asked(dict[str, str]):
        names: set[str] = set()  # noqa: RUF012

        def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
            self.names.add(name)
            return super().get(name, default)

    Access.read(Asked(LOGIN))
    assert Asked.names == set(BROKER_VARIABLES)
