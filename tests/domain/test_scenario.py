"""Which rule answers a message."""

from __future__ import annotations

import pytest

from emulator.domain.scenario import Condition, Facts, Miss, Rule, choose, misses, unanswered

FACTS = Facts(
    message="Where is Order A-4471?",
    turn=2,
    title="Support",
    metadata={"tenant": "acme", "run": "7"},
    model="MiniMax-M3",
    tools=frozenset(("lookup_order", "docs", "web_search")),
)


async def nothing(_turn: object) -> None:
    return None


def rule(name: str, condition: Condition | None = None, *, otherwise: bool = False) -> Rule:
    return Rule(condition, nothing, name, otherwise)


@pytest.mark.parametrize(
    "condition",
    [
        Condition(),
        Condition(contains="order"),
        Condition(contains="A-4471?"),
        Condition(equals="Where is Order A-4471?"),
        Condition(matches=r"[A-Z]-\d{4}"),
        Condition(turn=2),
        Condition(metadata={"tenant": "acme"}),
        Condition(metadata={}),
        Condition(title="Support"),
        Condition(model="MiniMax-M3"),
        Condition(tool="lookup_order"),
        Condition(tool="docs"),
        Condition(tool="web_search"),
        Condition(contains="order", turn=2, metadata={"run": "7"}, tool="docs"),
    ],
)
def test_a_condition_holds_when_every_part_of_it_is_true(condition: Condition) -> None:
    assert condition.holds(FACTS)
    assert condition.failures(FACTS) == []


@pytest.mark.parametrize(
    ("condition", "failure"),
    [
        (Condition(contains="refund"), ("message.contains", "refund", FACTS.message)),
        (Condition(equals="where is order a-4471?"), ("message.equals", "where is order a-4471?", FACTS.message)),
        (Condition(matches="^order"), ("message.matches", "^order", FACTS.message)),
        (Condition(turn=1), ("turn", 1, 2)),
        (Condition(metadata={"tenant": "other"}), ("metadata.tenant", "other", "acme")),
        (Condition(metadata={"region": "eu"}), ("metadata.region", "eu", None)),
        (Condition(title="support"), ("title", "support", "Support")),
        (Condition(model="claude"), ("model", "claude", "MiniMax-M3")),
        (Condition(tool="order"), ("tool", "order", ["docs", "lookup_order", "web_search"])),
    ],
)
def test_a_condition_that_fails_says_which_part_and_what_was_there(
    condition: Condition, failure: tuple[str, object, object]
) -> None:
    assert not condition.holds(FACTS)
    assert condition.failures(FACTS) == [failure]


def test_every_part_that_fails_is_named() -> None:
    names = [name for name, _, _ in Condition(contains="x", turn=9, title="y").failures(FACTS)]
    assert names == ["message.contains", "turn", "title"]


def test_contains_ignores_case_beyond_ascii() -> None:
    assert Condition(contains="STRASSE").holds(Facts("in der Straße"))


def test_the_first_rule_that_holds_is_chosen() -> None:
    first, second = rule("first", Condition(contains="order")), rule("second", Condition(turn=2))
    assert choose([rule("no", Condition(turn=5)), first, second], FACTS) is first


def test_otherwise_waits_for_every_other_rule_wherever_it_stands() -> None:
    fallback, late = rule("fallback", otherwise=True), rule("late", Condition(contains="order"))
    assert choose([fallback, late], FACTS) is late
    assert choose([fallback, late], Facts("hello")) is fallback


def test_of_two_otherwise_rules_the_first_counts() -> None:
    first, second = rule("first", otherwise=True), rule("second", otherwise=True)
    assert choose([first, second], FACTS) is first


def test_a_rule_without_a_condition_always_holds() -> None:
    always = rule("always")
    assert choose([rule("fallback", otherwise=True), always], FACTS) is always


def test_nothing_is_chosen_when_nothing_holds() -> None:
    assert choose([rule("no", Condition(turn=5))], FACTS) is None
    assert choose([], FACTS) is None


def test_a_rule_that_is_used_up_leaves_the_rest_to_those_after_it() -> None:
    twice = Rule(None, nothing, "twice", times=2)
    after = Rule(None, nothing, "after")
    assert choose([twice, after], Facts("hi")) is twice
    twice.used = 1
    assert choose([twice, after], Facts("hi")) is twice
    twice.used = 2
    assert choose([twice, after], Facts("hi")) is after
    last = Rule(None, nothing, "last", otherwise=True, times=1, used=1)
    spare = Rule(None, nothing, "spare", otherwise=True)
    assert choose([twice, last, spare], Facts("hi")) is spare


def test_every_rule_says_why_it_did_not_answer() -> None:
    rules = [
        Rule(Condition(contains="order", turn=2), nothing, "orders"),
        Rule(Condition(contains="hi"), nothing, "greeting", times=1, used=1),
        Rule(Condition(contains="bye"), nothing, "farewell", times=3, used=3),
        Rule(None, nothing, "rest", otherwise=True, times=2, used=2),
    ]
    found = misses(rules, Facts("hi there"))
    assert [(miss.rule.name, miss.reason) for miss in found] == [
        ("orders", 'message.contains: wanted "order", was "hi there"; turn: wanted 2, was 1'),
        ("greeting", "used up after 1"),
        ("farewell", 'used up after 3; message.contains: wanted "bye", was "hi there"'),
        ("rest", "used up after 2"),
    ]
    assert found[0].as_json()["failed"][1] == {"condition": "turn", "wanted": 2, "actual": 1}
    told = unanswered([*found, *found])
    assert told.startswith('No rule of the script answers this message. orders: message.contains: wanted "order"')
    assert told.endswith("rest: used up after 2. And 4 more rules.")


def test_why_a_rule_did_not_answer_has_no_secret_in_it() -> None:
    facts = Facts("use gbr_pat_canary", metadata={"api_key": "canary"})
    condition = Condition(contains="x", metadata={"api_key": "canary-2"})
    miss = Miss(Rule(condition, nothing, "r"), condition.failures(facts))
    assert "canary" not in miss.reason + repr(miss.as_json())
