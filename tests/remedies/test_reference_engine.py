"""Which engine a job takes: the one asked for, or the one that can be had."""

import pytest

from ettwatch_trainer import ConfigError
from ettwatch_trainer.reference import ReferenceConfig
from ettwatch_trainer.reference import engine as engines

pytestmark = pytest.mark.torch


def engine(asked: str) -> str:
    return engines.settled(ReferenceConfig(engine=asked)).engine


def test_without_torchrec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert engine("plain") == engine("auto") == "plain"
    with pytest.raises(engines.NoEngine, match="torchrec and fbgemm_gpu cannot be found; install .* or give --engine"):
        engine("torchrec")


def test_a_torchrec_that_is_built_for_another_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise OSError(f"{name}: undefined symbol")

    monkeypatch.setattr(engines, "find_spec", lambda name: object())
    monkeypatch.setattr(engines, "import_module", broken)
    assert engine("auto") == "plain"
    with pytest.raises(engines.NoEngine, match="does not load: .*undefined symbol"):
        engine("torchrec")


def test_with_torchrec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: object())
    monkeypatch.setattr(engines, "import_module", lambda name: None)
    assert engine("auto") == engine("torchrec") == "torchrec"
    assert engine("plain") == "plain"


def test_an_engine_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="--engine: there is no 'other'"):
        ReferenceConfig(engine="other")
