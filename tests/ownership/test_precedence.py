"""Which rule holds: the longest prefix, then cluster and model, then the cluster, then the model, then neither."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from ettwatch_core.ownership import Owner, Owners, Rule, parse_owners

TEXT = """\
version: 1
owners:
  trainer_init: {system: start-up, team: trainer, contact: "#trainer"}
  trainer_init.checkpoint_load:
    system: checkpointing
    team: storage
    contact: "#storage"
    overrides:
      - {cluster: eu-1, team: storage-eu}
      - {cluster: eu-1, model: big, team: big-models, system: sharded load, contact: pager}
      - {model: big, team: storage, contact: "#big"}
      - {cluster: [us-1, us-2], model: [a, b], team: storage-us}
  shutdown:
    overrides:
      - {cluster: eu-1, team: eu}
"""
OWNERS = parse_owners(TEXT, "owners.yaml")
LOAD = "trainer_init.checkpoint_load"


def test_what_names_more_of_the_job_counts_first() -> None:
    assert OWNERS.of(LOAD) == Owner("storage", "checkpointing", "#storage")
    assert OWNERS.of(LOAD, "eu-1") == Owner("storage-eu", "checkpointing", None)
    assert OWNERS.of(LOAD, "eu-1", "big") == Owner("big-models", "sharded load", "pager")
    assert OWNERS.of(LOAD, "eu-1", "small") == Owner("storage-eu", "checkpointing", None)
    assert OWNERS.of(LOAD, "eu-2", "big") == Owner("storage", "checkpointing", "#big")
    assert OWNERS.of(LOAD, None, "big") == Owner("storage", "checkpointing", "#big")
    assert OWNERS.of(LOAD, "us-2", "a") == Owner("storage-us", "checkpointing", None)
    assert OWNERS.of(LOAD, "us-2", "c") == Owner("storage", "checkpointing", "#storage")


def test_the_prefix_counts_before_cluster_and_model() -> None:
    text = TEXT + "  trainer_init.checkpoint_load.read: {team: disks}\n"
    owners = parse_owners(text, "owners.yaml")
    assert owners.of(f"{LOAD}.read.header", "eu-1", "big") == Owner("disks")
    assert owners.of(f"{LOAD}.write", "eu-1", "big") == Owner("big-models", "sharded load", "pager")


def test_an_entry_may_hold_in_some_clusters_only() -> None:
    assert OWNERS.of("shutdown", "eu-1") == Owner("eu")
    assert OWNERS.of("shutdown.model_publish", "eu-1", "big") == Owner("eu")
    assert OWNERS.of("shutdown", "eu-2") is None
    assert OWNERS.of("shutdown") is None
    assert OWNERS.of("scheduling", "eu-1", "big") is None


def test_the_line_of_the_rule_is_known() -> None:
    rule = OWNERS.rule(f"{LOAD}.read", "eu-1", "big")
    assert rule is not None
    assert (rule.line, rule.stage) == (10, LOAD)


def test_both_kinds_of_team_have_contacts() -> None:
    text = "teams: {ads: {contact: [pager, '#ads']}, storage: {}}\nowners: {shutdown: {team: storage, contact: x}}"
    owners = parse_owners(text, "owners.yaml")
    assert owners.teams == {"ads": "pager, #ads", "storage": None}
    assert owners.contact("ads") == "pager, #ads"  # a team that owns jobs and no component
    assert owners.contact("storage") == "x"
    assert owners.contact("nobody") is None
    assert OWNERS.contact("trainer") == "#trainer"


def test_a_declared_contact_stands_in_for_one_that_is_missing() -> None:
    text = (
        "teams: {a: {contact: '#a'}, b: {contact: '#b'}}\n"
        "owners:\n  shutdown: {team: a, overrides: [{cluster: c, team: b}, {model: m, system: s}]}\n"
        "  scheduling: {team: a, contact: '#own'}\n"
    )
    owners = parse_owners(text, "owners.yaml")
    assert owners.of("shutdown") == Owner("a", None, "#a")
    assert owners.of("shutdown", "c") == Owner("b", None, "#b")
    assert owners.of("shutdown", None, "m") == Owner("a", "s", "#a")
    assert owners.of("scheduling") == Owner("a", None, "#own")


STAGES = ("shutdown", "shutdown.a", "shutdown.a.b", "shutdown.ab", "scheduling")
NAMES = (None, "x", "y")
KEYS = list(product(STAGES, NAMES, NAMES))


@given(st.sets(st.sampled_from(KEYS), min_size=1), st.sampled_from(STAGES), *(st.sampled_from((*NAMES, "z")),) * 2)
def test_the_rule_that_holds_is_the_greatest_of_those_that_fit(
    keys: set[tuple[str, str | None, str | None]], stage: str, cluster: str | None, model: str | None
) -> None:
    rules = tuple(Rule(s, c, m, Owner(f"{s}/{c}/{m}"), n) for n, (s, c, m) in enumerate(sorted(keys, key=str)))
    fitting = [
        rule
        for rule in rules
        if (stage == rule.stage or stage.startswith(f"{rule.stage}."))
        and rule.cluster in (None, cluster)
        and rule.model in (None, model)
    ]
    best = max(
        fitting,
        key=lambda rule: (len(rule.stage), rule.cluster is not None, rule.model is not None),
        default=None,
    )
    assert Owners("x", rules).rule(stage, cluster, model) == best
