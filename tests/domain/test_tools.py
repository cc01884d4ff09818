"""A session's tools: what the agent can reach with a set, and the rules a set keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator.domain.limits import NAME, TOOLS
from emulator.domain.tools import BUILT_INS, BuiltIn, FunctionTool, McpTool, ToolSet, check
from emulator.redaction import Secret
from emulator.refusals import Refusal

if TYPE_CHECKING:
    from emulator.domain.tools import Tool

LOOKUP: Final = FunctionTool("lookup_order")
DOCS: Final = McpTool("docs", url="https://mcp.example.com/mcp")
LOCAL: Final = McpTool("local", command="server")


def refusal(*tools: Tool, prefix: str = "tools") -> str:
    """What is said of a set that is refused."""
    with pytest.raises(Refusal) as refused:
        check(tools, prefix)
    assert (refused.value.code, refused.value.status) == ("invalid_request", 400)
    return refused.value.message


# What the agent can reach


@pytest.mark.parametrize(
    ("tools", "disabled", "reached"),
    [
        (None, (), BUILT_INS),
        (None, ("browse", "web_search"), ("web_fetch", "image_search", "browser_act", "screenshot")),
        ((), (), ()),
        ((LOOKUP, DOCS), (), BUILT_INS),
        ((LOOKUP,), ("browse",), ("web_search", "web_fetch", "image_search", "browser_act", "screenshot")),
        ((BuiltIn("screenshot"), BuiltIn("web_fetch")), (), ("web_fetch", "screenshot")),
        ((BuiltIn("web_fetch"), LOOKUP), ("web_fetch",), ()),
    ],
    ids=["never set", "never set, some off", "empty", "none named", "none named, one off", "named", "named and off"],
)
def test_the_built_ins_are_the_named_ones_or_the_deployments(
    tools: tuple[Tool, ...] | None, disabled: tuple[str, ...], reached: tuple[str, ...]
) -> None:
    assert ToolSet(tools).built_ins(disabled) == list(reached)


def test_a_read_shows_what_was_declared_less_what_is_switched_off() -> None:
    tools = ToolSet((LOOKUP, BuiltIn("web_fetch"), DOCS, BuiltIn("browse")))
    assert tools.listed(("browse", "docs", "lookup_order")) == [LOOKUP, BuiltIn("web_fetch"), DOCS]
    assert ToolSet(None).listed(()) == ToolSet(()).listed(()) == []


def test_functions_and_servers_are_found_by_kind() -> None:
    tools = ToolSet((DOCS, LOOKUP, BuiltIn("web_fetch"), LOCAL))
    assert tools.function("lookup_order") is LOOKUP
    assert (tools.function("docs"), tools.function("web_fetch"), ToolSet(None).function("x")) == (None, None, None)
    assert tools.servers() == [DOCS, LOCAL]
    assert ToolSet(None).servers() == []


def test_the_agent_knows_tools_by_their_names() -> None:
    assert ToolSet((DOCS, LOOKUP, BuiltIn("web_fetch"), BuiltIn("browse"))).names(("browse",)) == {
        "docs",
        "lookup_order",
        "web_fetch",
    }
    assert ToolSet(()).names(()) == frozenset()


def test_a_server_shows_every_tool_or_those_it_was_told() -> None:
    assert McpTool("a").allows("search")
    assert McpTool("a", allowed_tools=["search"]).allows("search")
    assert not McpTool("a", allowed_tools=["search"]).allows("delete")
    assert not McpTool("a", allowed_tools=[]).allows("search")


def test_what_a_server_keeps_back_is_named_and_not_shown() -> None:
    secret = Secret("canary")
    headers = {"X-Key": secret, "x-other": secret}
    guarded = McpTool("a", url="https://x.test", authorization=secret, headers=headers)
    assert guarded.withheld() == ["authorization", "headers.X-Key", "headers.x-other"]
    assert DOCS.withheld() == []
    assert "canary" not in repr(guarded)


# The rules of a set


def test_a_set_that_keeps_the_rules_is_kept_in_order_with_a_built_in_once() -> None:
    tools = (BuiltIn("browse"), LOOKUP, BuiltIn("browse"), DOCS, BuiltIn("web_fetch"), LOCAL, BuiltIn("browse"))
    assert check(tools, "tools") == (BuiltIn("browse"), LOOKUP, DOCS, BuiltIn("web_fetch"), LOCAL)
    assert check((), "tools") == ()


def test_a_set_has_a_most() -> None:
    most: list[Tool] = [FunctionTool(f"f{n}") for n in range(TOOLS)]
    assert len(check(most, "tools")) == TOOLS
    assert refusal(*most, LOOKUP, prefix="agent.tools").startswith(f"`agent.tools` has {TOOLS + 1} entries; at most")


@pytest.mark.parametrize("make", [FunctionTool, lambda name: McpTool(name, command="server")])
def test_a_name_has_a_length(make: Any) -> None:
    for length in (1, NAME):
        assert check([make("x" * length)], "tools")
    for length in (0, NAME + 1):
        said = refusal(LOOKUP, make("x" * length))
        assert said == f"`tools[1].name` must be 1 to {NAME} characters; {length} were sent."


def test_names_are_unique_across_functions_and_servers() -> None:
    for other in (FunctionTool("docs"), McpTool("docs", command="server")):
        said = refusal(LOOKUP, DOCS, other)
        assert said.startswith("`tools[2].name` is 'docs', which `tools[1].name` already is.")
    assert len(check([DOCS, FunctionTool("Docs")], "tools")) == 2


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (McpTool("a"), "`tools[0]` takes exactly one of `url` and `command`; neither was sent."),
        (
            McpTool("a", url="https://x.test", command="server"),
            "`tools[0]` takes exactly one of `url` and `command`; both were sent.",
        ),
        (
            McpTool("a", url="https://x.test", args=[]),
            "`tools[0].args` goes with `command`, which this entry does not have.",
        ),
        (
            McpTool("a", url="https://x.test", env_refs={}),
            "`tools[0].env_refs` goes with `command`, which this entry does not have.",
        ),
        (
            McpTool("a", command="server", authorization=Secret("canary")),
            "`tools[0].authorization` goes with `url`, which this entry does not have.",
        ),
        (
            McpTool("a", command="server", headers={}),
            "`tools[0].headers` goes with `url`, which this entry does not have.",
        ),
        (McpTool("a", command=" \t"), "`tools[0].command` must not be empty."),
        (McpTool("a", command=""), "`tools[0].command` must not be empty."),
    ],
)
def test_a_server_is_reached_one_way_and_carries_nothing_of_the_other(tool: McpTool, said: str) -> None:
    assert refusal(tool) == said


@pytest.mark.parametrize(
    "url",
    [
        "https://mcp.example.com/mcp",
        "http://localhost:3000",
        "HTTPS://EXAMPLE.COM",
        "https://user@example.com/",
        "http://[::1]:8080/mcp",
        "https://example.com:65535/?q=a#b",
    ],
)
def test_an_address_with_a_host_is_accepted(url: str) -> None:
    assert check([McpTool("a", url=url)], "tools")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mcp.example.com",
        "ftp://example.com",
        "https://",
        "https:///mcp",
        "https://:8080/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:http/",
        "https://exa mple.com",
        "https://example.com/\n",
        "http://[::1/mcp",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    said = refusal(McpTool("a", url=url))
    assert said == "`tools[0].url` does not parse: an http or https address with a host is accepted."
