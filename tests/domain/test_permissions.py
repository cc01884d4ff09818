"""Permissions: what the mode decides, what a rule decides before it, and which rules match."""

from __future__ import annotations

from typing import Any, Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.domain.permissions import DECISIONS, MODES, READING, Verdict, decide

ALLOW: Final = Verdict("allow")
ASK: Final = Verdict("ask")


def matches(rule: dict[str, Any], tool: str = "bash", **args: Any) -> bool:
    """Whether a rule holds for what the agent wants to do."""
    return decide("auto", [{**rule, "decision": "deny"}], tool, args).decision == "deny"


# The mode


@pytest.mark.parametrize(
    ("mode", "read_only", "asks", "decision"),
    [
        ("auto", False, False, "allow"),
        ("auto", False, True, "ask"),
        ("plan", False, False, "deny"),
        ("plan", False, True, "deny"),
        ("plan", True, False, "allow"),
        ("plan", True, True, "ask"),
        ("per_step", False, False, "ask"),
        ("per_step", True, False, "ask"),
        ("read_only", False, False, "deny"),
        ("read_only", False, True, "deny"),
        ("read_only", True, False, "allow"),
        ("read_only", True, True, "ask"),
    ],
)
def test_without_a_rule_the_mode_decides(mode: str, read_only: bool, asks: bool, decision: str) -> None:
    assert mode in MODES
    assert decide(mode, [], "bash", {}, read_only=read_only, asks=asks).decision == decision


@pytest.mark.parametrize("mode", ["read_only", "plan"])
@pytest.mark.parametrize(
    ("tool", "decision"),
    [
        *((tool, "allow") for tool in ("read", "grep", "find", "ls")),
        *((tool, "allow") for tool in ("web_search", "web_fetch", "image_search", "browse", "screenshot")),
        *((tool, "deny") for tool in ("bash", "write", "edit", "delete", "browser_act")),
        *((tool, "deny") for tool in ("Read", "mcp_docs_read", "something_new", "")),
    ],
)
def test_where_nothing_may_change_only_tools_known_to_read_go_through(mode: str, tool: str, decision: str) -> None:
    assert decide(mode, [], tool, {}).decision == decision


@pytest.mark.parametrize("tool", sorted(READING | {"bash", "write"}))
def test_per_step_asks_about_each_step(tool: str) -> None:
    assert decide("per_step", [], tool, {}, read_only=True) == ASK


def test_a_denial_says_why_and_names_the_tool() -> None:
    by_mode = decide("read_only", [], "bash", {})
    assert (by_mode.code, by_mode.reason) == (
        "denied_read_only",
        "This session is read-only, and bash could change something.",
    )
    by_plan = decide("plan", [], "bash", {})
    assert (by_plan.code, by_plan.reason) == (
        "denied_read_only",
        "This session makes a plan and does not carry it out, and bash could change something.",
    )
    by_rule = decide("auto", [{"decision": "deny"}], "bash", {})
    assert (by_rule.code, by_rule.reason) == ("denied_by_rule", "A permission rule of this session denies bash.")


# The order


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("asks", [False, True])
def test_a_rule_beats_the_mode_in_both_directions(
    mode: str, asks: bool, decision: Literal["allow", "deny", "ask"]
) -> None:
    verdict = decide(mode, [{"tool": "bash", "decision": decision}], "bash", {}, asks=asks)
    assert verdict.decision == decision
    assert verdict.code == ("denied_by_rule" if decision == "deny" else None)


def test_the_first_rule_that_matches_decides() -> None:
    deny, allow = {"tool": "bash", "decision": "deny"}, {"tool": "b*", "decision": "allow"}
    other = {"tool": "write", "decision": "ask"}
    assert decide("auto", [other, deny, allow], "bash", {}).decision == "deny"
    assert decide("per_step", [other, allow, deny], "bash", {}) == ALLOW
    assert decide("per_step", [other], "bash", {}) == ASK


def test_a_rule_without_conditions_matches_everything() -> None:
    assert matches({})
    assert matches({}, "docs.search", q="x")


# What matches


@pytest.mark.parametrize(
    ("pattern", "tool", "expected"),
    [
        ("bash", "bash", True),
        ("bash", "Bash", False),
        ("bash", "bash2", False),
        ("*", "anything", True),
        ("web_*", "web_fetch", True),
        ("web_*", "image_search", False),
        ("docs.*", "docs.search", True),
        ("docs.*", "docs", False),
        ("?ash", "bash", True),
        ("[bc]ash", "cash", True),
        ("[!bc]ash", "bash", False),
        ("", "bash", False),
    ],
)
def test_a_tool_is_matched_as_a_glob(pattern: str, tool: str, expected: bool) -> None:
    assert matches({"tool": pattern}, tool) is expected


@pytest.mark.parametrize(
    ("pattern", "command", "expected"),
    [
        ("git", "git", True),
        ("git", "git push origin", True),
        ("git", "gitk", False),
        ("git push", "git push --force", True),
        ("git push", "git pull", False),
        ("rm *", "rm -rf /", True),
        ("rm *", "rm", False),
        ("*deploy*", "./deploy eu", True),
        ("[ -f", "[ -f x ]", True),
        ("git push", "  git push origin", True),
        ("git push", "git \t push\norigin", True),
        (" git  push ", "git push", True),
        ("git push", "GIT push", False),
        ("git push", "echo git push", False),
    ],
)
def test_a_command_is_matched_as_a_glob_or_by_its_first_words(pattern: str, command: str, expected: bool) -> None:
    assert matches({"command": pattern}, command=command) is expected


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/workspace/src", "/workspace/src", True),
        ("/workspace/src", "/workspace/src/a.py", True),
        ("/workspace/src/", "/workspace/src/a.py", True),
        ("/workspace/src", "/workspace/srcs/a.py", False),
        ("/workspace/*.md", "/workspace/a.md", True),
        ("/workspace/*.md", "/workspace/docs/a.md", True),
        ("/workspace/*.md", "/workspace/a.py", False),
        ("/", "/etc/passwd", True),
        ("/workspace/[x]", "/workspace/[x]/a", True),
        ("/workspace/[st]ecrets", "/workspace/secrets/a", True),
        ("secrets", "/workspace/secrets/key", True),
        ("secrets/**", "secrets", True),
        ("secrets/*", "secrets/deep/key", True),
        ("secrets", "/secrets/key", False),
        ("secrets", "old/secrets/key", False),
        ("**/.env", ".env", True),
        ("**/.env", "/etc/.env", True),
        ("**/.env", "my.env", False),
        ("src/**/key", "src/key", True),
        ("src/**/key", "src/a/b/key", True),
        ("src/**/**/key", "src/key", True),
        ("src/**/key", "src/monkey", False),
        ("src/**/**", "src", True),
        ("*.pem", "/etc/ssl/a.pem", True),
        ("*", "a", True),
        ("/**", "/etc", True),
        ("..", "/etc/hosts", True),
        ("/workspace", "", False),
    ],
)
def test_a_path_is_matched_as_a_glob_or_by_its_folder(pattern: str, path: str, expected: bool) -> None:
    assert matches({"path": pattern}, path=path) is expected


@pytest.mark.parametrize(
    ("pattern", "url", "expected"),
    [
        ("example.com", "https://example.com/a", True),
        ("example.com", "https://user:pw@EXAMPLE.com:8443/a?b", True),
        ("example.com", "https://docs.example.com", False),
        ("*.example.com", "https://docs.example.com", True),
        ("*.example.com", "https://example.com", False),
        ("example.com", "https://evil.test/example.com", False),
        ("example.com", "https://example.com.evil.test", False),
        ("example.com", "example.com", True),
        ("example.com", "localhost:3000/example.com", False),
        ("localhost", "localhost:3000/example.com", True),
        ("example.com", "user@evil.test", False),
        ("Example.COM.", "https://example.com", True),
        ("https://example.com/docs", "https://example.com/other", True),
        ("example.com:443", "https://example.com", True),
        ("*.example.com", "https://a.b.example.com.", True),
        ("*.bücher.example", "https://www.xn--bcher-kva.example", True),
        ("xn--bcher-kva.example", "https://BÜCHER.example/", True),
        ("[::1]", "http://[::1]:80/", True),
        ("::1", "http://u:p@[::1]/", True),
        ("?*", "", False),
        ("*", "", False),
        ("*", "http://[broken", True),
        ("?*", "http://[broken", True),
    ],
)
def test_a_domain_is_matched_with_the_host_of_an_address(pattern: str, url: str, expected: bool) -> None:
    assert matches({"domain": pattern}, "web_fetch", url=url) is expected


# Spelling


def _spellings_of_a_path(names: list[str]) -> st.SearchStrategy[str]:
    """Other ways to write the path of those names below the workspace."""
    detours = st.sampled_from(["", "./", ".//", "a/../", "a/./b/../../", "/"])
    starts = st.sampled_from(["", "/workspace/", "./", "../workspace/", "//workspace/", "/tmp/../workspace/", "/./"])

    def spelled(drawn: tuple[str, list[str]]) -> str:
        start, ways = drawn
        start = start if start != "/./" else "/./workspace/"
        body = "".join(f"{way}{name}/" for way, name in zip(ways, names, strict=True))
        return start + (body if start else body.lstrip("/"))[:-1]

    ways = st.lists(detours, min_size=len(names), max_size=len(names))
    return st.tuples(starts, ways).map(spelled)


@given(
    path=_spellings_of_a_path(["secrets", "deep", "key.pem"]),
    rule=st.sampled_from(
        [
            "secrets",
            "secrets/",
            "secrets/**",
            "secrets/*",
            "./secrets",
            "/workspace/secrets/*",
            "/workspace/x/../secrets",
            "/workspace/secrets/deep/key.pem",
            "**/key.pem",
            "**/secrets/**",
            "*.pem",
            "/workspace/**/deep",
            "se[c]rets",
        ]
    ),
    tool=st.sampled_from(["read", "write", "edit", "delete", "mcp_disk_get"]),
)
def test_no_spelling_of_a_path_dodges_a_rule(path: str, rule: str, tool: str) -> None:
    assert matches({"path": rule}, tool, path=path)


@given(path=_spellings_of_a_path(["Secrets", "key"]))
def test_case_is_part_of_a_path(path: str) -> None:
    assert not matches({"path": "secrets"}, path=path)
    assert matches({"path": "Secrets"}, path=path)


@given(
    scheme=st.sampled_from(
        ["https://", "HTTP://", "", "//", "https:", "https:/", "https:///", "https:\\\\", " https://"]
    ),
    user=st.sampled_from(["", "me@", "me:pw@", "example.test@", "a@b@"]),
    host=st.sampled_from(
        [
            "docs.bücher.example",
            "DOCS.Bücher.Example",
            "docs.xn--bcher-kva.example",
            "docs.b%C3%BCcher.example",
            "docs。bücher。example",
            "ｄｏｃｓ.bücher.example",
            "do\tcs.bücher.example",
            "docs.bücher.example",
        ]
    ),
    end=st.sampled_from(["", ".", ":443", ".:8443", ":"]),
    rest=st.sampled_from(["", "/", "/a@other.test", "?q=@other.test", "#x", "\\@other.test"]),
)
def test_no_spelling_of_an_address_dodges_a_rule(scheme: str, user: str, host: str, end: str, rest: str) -> None:
    for rule in ("docs.bücher.example", "*.xn--bcher-kva.example", "DOCS.BÜCHER.EXAMPLE."):
        assert matches({"domain": rule}, "web_fetch", url=f"{scheme}{user}{host}{end}{rest}")


@pytest.mark.parametrize(
    "rule",
    [
        *({"command": "git"}, {"command": "*"}, {"command": ""}, {"path": "/workspace"}, {"path": "*"}),
        *({"domain": "example.com"}, {"domain": "*"}, {"tool": "web_*"}),
    ],
)
def test_a_condition_on_what_is_not_there_does_not_hold(rule: dict[str, str]) -> None:
    assert not matches(rule)


def test_every_condition_of_a_rule_must_hold() -> None:
    rule = {"tool": "bash", "command": "git", "path": "/workspace"}
    assert matches(rule, command="git push", path="/workspace/a")
    assert not matches(rule, "sh", command="git push", path="/workspace/a")
    assert not matches(rule, command="svn", path="/workspace/a")
    assert not matches(rule, command="git push", path="/etc")


def test_an_argument_that_is_no_text_is_matched_as_it_prints() -> None:
    assert matches({"command": "[[]'git'*"}, command=["git", "push"])
