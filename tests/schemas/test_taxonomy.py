import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_schemas import COMPONENTS, EFFECTIVE, STAGES, DecodeError, component_of, decode_event, is_phase
from ettwatch_schemas.taxonomy import MAX_PHASE_CHARS
from support.examples import phases, wire


def test_six_components() -> None:
    assert COMPONENTS == (
        "scheduling",
        "hardware_setup",
        "trainer_init",
        "pt2_compilation",
        "wasted_training",
        "shutdown",
    )


@pytest.mark.parametrize("stage", STAGES)
def test_documented_stages_are_phases_of_their_component(stage: str) -> None:
    assert is_phase(stage)
    assert component_of(stage) == stage.partition(".")[0]


def test_every_component_is_documented() -> None:
    assert {stage for stage in STAGES if "." not in stage} == set(COMPONENTS)


def test_effective_training_is_a_stage_and_no_phase() -> None:
    assert component_of(EFFECTIVE) == EFFECTIVE
    assert not is_phase(EFFECTIVE)
    with pytest.raises(ValueError, match="belongs to no component"):
        component_of(f"{EFFECTIVE}.x")


@pytest.mark.parametrize(
    "stage", ["", "training", "trainer", "trainer_init2", ".trainer_init", "Shutdown", "a.shutdown"]
)
def test_unknown_component_is_an_error_that_names_the_known_ones(stage: str) -> None:
    assert not is_phase(stage)
    with pytest.raises(ValueError, match="scheduling, hardware_setup, trainer_init"):
        component_of(stage)


@pytest.mark.parametrize(
    "name", ["shutdown.", "shutdown..x", "shutdown.X", "shutdown.a-b", "shutdown.a b", "shutdown.ü", "shutdown\n"]
)
def test_misspelled_sub_stages_are_no_phases(name: str) -> None:
    assert not is_phase(name)


def test_length_is_bounded() -> None:
    longest = "shutdown." + "x" * (MAX_PHASE_CHARS - len("shutdown."))
    assert is_phase(longest)
    assert not is_phase(longest + "x")


@given(phases() | st.text(max_size=30) | st.sampled_from(COMPONENTS).map(lambda name: name + "\n"))
def test_is_phase_and_decoding_agree(name: str) -> None:
    data = wire(kind="phase_started", span="s", phase=name, position=...)
    if is_phase(name):
        assert decode_event(data).phase == name  # type: ignore[union-attr]
    else:
        with pytest.raises(DecodeError):
            decode_event(data)
