"""Settings: every kind and range, from values, texts and variables, and what a wrong one is told."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

import pytest

from emulator import settings as module
from emulator.redaction import Secret
from emulator.settings import (
    NAMES,
    PREFIX,
    Connection,
    Profile,
    ProviderAnswer,
    SettingError,
    Settings,
    as_json,
    changed,
    check_names,
    from_environment,
    from_texts,
)

DEFAULTS: Final = Settings()
OWN: Final = {"label": "Own", "connector": "openai", "model": "m-1"}


def refusal(name: str, value: Any) -> str:
    """What is said of a value."""
    with pytest.raises(SettingError, match=f"`{name}") as refused:
        changed(DEFAULTS, {name: value})
    return str(refused.value)


def text_refusal(name: str, text: str) -> str:
    """What is said of a text."""
    with pytest.raises(SettingError, match=f"`{name}") as refused:
        from_texts(DEFAULTS, {name: text})
    return str(refused.value)


# Values


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("seed", -7, -7),
        ("seed", 2**70, 2**70),
        ("clock", "real", "real"),
        ("disabled_tools", ["browse", "browse"], ("browse", "browse")),
        ("disabled_tools", (), ()),
        ("ping_seconds", 3, 3.0),
        ("ping_seconds", 0.01, 0.01),
        ("github", False, False),
        ("connections", [OWN], (Connection("Own", "openai", "m-1"),)),
        ("connections", [], ()),
        ("profiles", [{"name": "a"}], (Profile("a", is_default=False, variable_count=0),)),
        ("profiles", [{"name": "a", "is_default": True, "variable_count": 3}], (Profile("a", True, 3),)),
        ("provider_answers", [{"key": "*", "outcome": "ok"}], (ProviderAnswer("*", "ok", ""),)),
        ("session_limit", 1, 1),
        ("queue_limit", 0, 0),
    ],
)
def test_a_value_of_its_kind_is_taken(name: str, value: Any, kept: Any) -> None:
    settings = changed(DEFAULTS, {name: value})
    assert getattr(settings, name) == kept
    assert type(getattr(settings, name)) is type(kept)
    assert dataclasses.replace(settings, **{name: getattr(DEFAULTS, name)}) == DEFAULTS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", "7"),
        ("seed", 1.0),
        ("seed", True),
        ("seed", None),
        ("github", 1),
        ("github", "true"),
        ("ping_seconds", True),
        ("ping_seconds", "15"),
        ("ping_seconds", None),
        ("clock", "frozen"),
        ("clock", None),
        ("clock", ["real"]),
        ("disabled_tools", "browse"),
        ("disabled_tools", {"browse": True}),
        ("disabled_tools", ["browse", 7]),
        ("connections", OWN),
        ("connections", ["MiniMax"]),
        ("connections", [{"label": "x"}]),
        ("connections", [{**OWN, "extra": "x"}]),
        ("connections", [{**OWN, "model": 7}]),
        ("connections", [{**OWN, "connector": "antropic"}]),
        ("profiles", [{}]),
        ("profiles", [{"name": "a", "variable_count": -1}]),
        ("profiles", [{"name": "a", "is_default": 1}]),
        ("profiles", [{"name": "a", "variable_count": True}]),
        ("profiles", [{"name": "a", "extra": 1}]),
        ("provider_answers", [{"key": "*"}]),
        ("provider_answers", [{"key": "*", "outcome": "maybe"}]),
        ("provider_answers", [{"key": "*", "outcome": "ok", "message": None}]),
    ],
)
def test_a_value_of_another_kind_is_refused_by_its_name(name: str, value: Any) -> None:
    refusal(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("public_url", "http://\udcff"),
        ("lost_artifacts", ["\ud800"]),
        ("profiles", [{"name": "\ud800"}]),
        ("repositories", [{"full_name": "a/b", "clone_error": "\ud800"}]),
        ("repositories", [{"full_name": "a/b", "files": {"a": "\ud800"}}]),
        ("repositories", [{"full_name": "a/b", "files": {"\ud800": "a"}}]),
    ],
)
def test_a_text_that_no_answer_could_say_is_refused(name: str, value: Any) -> None:
    with pytest.raises(SettingError, match="half a surrogate pair") as refused:
        changed(Settings(), {name: value})
    assert str(refused.value).startswith(f"`{name}")


def test_an_entry_of_a_list_is_told_by_its_place() -> None:
    assert refusal("disabled_tools", ["browse", 7]).startswith("`disabled_tools[1]`")
    assert refusal("connections", [OWN, {}]).startswith("`connections[1]` is an object of label, connector, model")
    assert refusal("connections", [{**OWN, "model": 7}]) == "`connections[0].model` is text, which 7 is not."
    wrong = [{"key": "*", "outcome": "maybe"}]
    assert refusal("provider_answers", wrong).startswith("`provider_answers[0].outcome` is one of ok, rejected")


def test_a_choice_is_told_all_of_them() -> None:
    assert refusal("pace", "fast") == "`pace` is one of instant, realistic, not 'fast'."


LEAST: Final = dict(module._MINIMUM)


@pytest.mark.parametrize("name", LEAST)
def test_a_number_has_a_least(name: str) -> None:
    least = LEAST[name]
    kind = type(getattr(DEFAULTS, name))
    assert getattr(changed(DEFAULTS, {name: kind(least)}), name) == least
    for too_small in (least - (1 if kind is int else 0.001), -1):
        assert refusal(name, kind(too_small)).startswith(f"`{name}` is from {least:g} to ")


def test_every_number_but_the_seed_has_a_least() -> None:
    numbers = {field.name for field in dataclasses.fields(Settings) if type(field.default) in (int, float)}
    assert numbers - set(LEAST) == {"seed"}
    assert set(LEAST) <= numbers


@pytest.mark.parametrize("name", [n for n in LEAST if type(getattr(DEFAULTS, n)) is float])
@pytest.mark.parametrize("text", ["nan", "-inf", "-Infinity"])
def test_a_number_is_not_without_value_or_less_than_all(name: str, text: str) -> None:
    refusal(name, float(text))
    text_refusal(name, text)


@pytest.mark.parametrize("name", [n for n in LEAST if type(getattr(DEFAULTS, n)) is float])
def test_a_number_is_finite(name: str) -> None:
    refusal(name, float("inf"))
    text_refusal(name, "inf")


def test_what_is_set_at_the_start_cannot_be_set_later() -> None:
    at_start = {field.name for field in dataclasses.fields(Settings) if field.metadata["at_start"]}
    assert {"seed", "clock", "allow_processes"} <= at_start
    for name in NAMES:
        same = {name: as_json(DEFAULTS)[name]}
        if name in at_start:
            with pytest.raises(SettingError, match=f"^`{name}` can only be set when the emulator starts"):
                changed(DEFAULTS, same, running=True)
        else:
            assert changed(DEFAULTS, same, running=True) == DEFAULTS


def test_a_change_is_taken_whole_or_not_at_all_and_leaves_the_old_as_it_was() -> None:
    with pytest.raises(SettingError):
        changed(DEFAULTS, {"queue_limit": 9, "pace": "fast"})
    assert Settings() == DEFAULTS
    assert changed(DEFAULTS, {}) == DEFAULTS


def test_settings_go_through_json_and_back() -> None:
    settings = changed(DEFAULTS, {"connections": [OWN], "disabled_tools": ["browse"], "rest_seconds": 2})
    shown = as_json(settings)
    assert list(shown) == list(NAMES)
    assert shown["connections"] == [OWN]
    assert changed(DEFAULTS, json.loads(json.dumps(shown))) == settings


def test_every_setting_says_what_it_means() -> None:
    assert all(field.metadata["doc"] for field in dataclasses.fields(Settings))


# Names


@pytest.mark.parametrize(
    ("sent", "meant"),
    [("sede", "seed"), ("queuelimit", "queue_limit"), ("queue-limit", "queue_limit"), ("paces", "pace")],
)
def test_an_unknown_name_is_told_what_was_meant(sent: str, meant: str) -> None:
    for attempt in (
        lambda: check_names({sent: 1}),
        lambda: changed(DEFAULTS, {sent: 1}),
        lambda: from_texts(DEFAULTS, {sent: "1"}),
    ):
        with pytest.raises(SettingError) as refused:
            attempt()
        assert f"`{sent}` is not a setting. Did you mean `{meant}`?" in str(refused.value)
        assert ", ".join(NAMES) in str(refused.value)


def test_a_name_like_none_is_told_them_all() -> None:
    with pytest.raises(SettingError, match=r"^`wibble` is not a setting\. The settings are seed, clock,"):
        check_names({"seed": 1, "wibble": 1})


# Texts


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("seed", "42", 42),
        ("seed", " -1 ", -1),
        ("clock", "real", "real"),
        ("ping_seconds", "0.5", 0.5),
        ("ping_seconds", "3", 3.0),
        ("ping_seconds", "1e2", 100.0),
        ("disabled_tools", "browse, screenshot", ("browse", "screenshot")),
        ("disabled_tools", "", ()),
        ("disabled_tools", " , browse,", ("browse",)),
        ("disabled_tools", ' ["browse"]', ("browse",)),
        ("disabled_tools", "[]", ()),
        ("connections", json.dumps([OWN]), (Connection("Own", "openai", "m-1"),)),
        *(("github", text, True) for text in ("true", "TRUE", "1", "yes", "on")),
        *(("github", text, False) for text in ("false", "False", "0", "no", "off")),
    ],
)
def test_a_text_is_read_by_the_kind_of_its_setting(name: str, text: str, kept: Any) -> None:
    settings = from_texts(DEFAULTS, {name: text})
    assert getattr(settings, name) == kept
    assert type(getattr(settings, name)) is type(kept)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("github", "", "`github` is true or false, not ''."),
        ("github", "2", "`github` is true or false, not '2'."),
        ("seed", "seven", "`seed` is a number, not 'seven'."),
        ("seed", "1.5", "`seed` is a number, not '1.5'."),
        ("seed", "", "`seed` is a number, not ''."),
        ("ping_seconds", "1s", "`ping_seconds` is a number, not '1s'."),
        ("disabled_tools", "[browse]", "`disabled_tools` is not valid JSON."),
        ("disabled_tools", "[1]", "`disabled_tools[0]`"),
        ("connections", "MiniMax", "`connections[0]` is an object of label, connector, model"),
        ("pace", "fast", "`pace` is one of instant, realistic, not 'fast'."),
        ("pace", "INSTANT", "`pace` is one of instant, realistic, not 'INSTANT'."),
        ("queue_limit", "-1", "`queue_limit` is from 0 to 1000000000, not -1."),
    ],
)
def test_a_text_that_cannot_be_read_is_refused(name: str, text: str, said: str) -> None:
    assert text_refusal(name, text).startswith(said)


# Variables


def test_variables_are_found_by_their_prefix() -> None:
    environment = {
        f"{PREFIX}SEED": "7",
        f"{PREFIX}QUEUE_LIMIT": "",
        "SEED": "8",
        "GOBARE_TOKEN": "x",
        f"MY_{PREFIX}PACE": "instant",
    }
    assert from_environment(environment) == {"seed": "7"}
    assert from_environment({}) == {}


def test_a_caller_may_know_more_names() -> None:
    environment = {f"{PREFIX}HOST": "0.0.0.0", f"{PREFIX}PORT": "4747"}
    assert from_environment(environment, others=("host", "port")) == {"host": "0.0.0.0", "port": "4747"}
    with pytest.raises(SettingError, match=f"^{PREFIX}HOST is not a setting"):
        from_environment(environment)


@pytest.mark.parametrize(
    ("variable", "others", "hint"),
    [
        (f"{PREFIX}SEDE", (), " Did you mean `seed`?"),
        (f"{PREFIX}PORTS", ("port",), " Did you mean `port`?"),
        (f"{PREFIX}WIBBLE", (), ""),
        (PREFIX, (), ""),
    ],
)
def test_an_unknown_variable_is_told_by_its_whole_name(variable: str, others: tuple[str, ...], hint: str) -> None:
    with pytest.raises(SettingError) as refused:
        from_environment({variable: "canary"}, others=others)
    assert str(refused.value) == f"{variable} is not a setting.{hint}"


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("SERVICE_HOST", "10.0.0.7"),
        ("SERVICE_PORT", "4747"),
        ("SERVICE_PORT_HTTP", "4747"),
        ("PORT", "tcp://10.0.0.7:4747"),
        ("PORT", "udp://10.0.0.7:4747"),
        ("PORT_4747_TCP", "tcp://10.0.0.7:4747"),
        ("PORT_4747_TCP_ADDR", "10.0.0.7"),
        ("PORT_4747_TCP_PORT", "4747"),
        ("PORT_4747_TCP_PROTO", "tcp"),
        ("NAME", "/web/gobare-emulator"),
        ("ENV_PATH", "/usr/bin"),
    ],
)
def test_what_an_orchestrator_injects_for_a_service_of_the_name_is_passed_over(rest: str, text: str) -> None:
    environment = {f"{PREFIX}{rest}": text, f"{PREFIX}SEED": "7"}
    assert from_environment(environment, others=("port",)) == {"seed": "7"}


def test_a_port_that_somebody_chose_is_not_mistaken_for_an_injected_one() -> None:
    assert from_environment({f"{PREFIX}PORT": "8080"}, others=("port",)) == {"port": "8080"}


def test_variables_of_profiles_are_secrets_and_are_counted() -> None:
    given = [{"name": "a", "variables": {"KEY": "tok-9f2b7c41d8", "REGION": "eu"}}]
    settings = changed(DEFAULTS, {"profiles": given})
    (profile,) = settings.profiles
    assert profile.variables == {"KEY": Secret("tok-9f2b7c41d8"), "REGION": Secret("eu")}
    assert profile.variable_count == 2
    withheld = {"KEY": "[withheld]", "REGION": "[withheld]"}
    assert as_json(settings)["profiles"] == [
        {"name": "a", "is_default": False, "variable_count": 2, "variables": withheld}
    ]
    assert "tok-9f2b7c41d8" not in repr(settings)


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ({"variables": {"KEY": 7, "SECRET": "tok-9f2b7c41d8"}}, "`profiles[0].variables` is an object of texts."),
        ({"variables": ["tok-9f2b7c41d8"]}, "`profiles[0].variables` is an object of texts."),
        (
            {"variables": {"KEY": "tok-9f2b7c41d8"}, "variable_count": 3},
            "`profiles`: 'a' has 1 variables, not 3. Leave `variable_count` out.",
        ),
    ],
)
def test_variables_that_are_none_are_refused_without_showing_them(profile: dict[str, Any], told: str) -> None:
    assert refusal("profiles", [{"name": "a"} | profile]) == told
