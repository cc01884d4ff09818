"""Scenario problems: what is wrong with a document of the wrong shape, told to its author.

Law: a message says where, what is accepted there and, where something is close, what was meant. It
speaks of keys and values, never of the models that found the problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from emulator.refusals import did_you_mean, suggest
from emulator.scenario_source import Problem, Where, kind_of
from emulator.wire import faults, servers, steps
from emulator.wire import scenario as wire
from emulator.wire.shape import Shape, keys_of

if TYPE_CHECKING:
    from pydantic import ValidationError

_WANTED: Final[Mapping[str, str]] = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
_RULE: Final = ("when", "do")
_ONE_OF: Final = "A rule has `when` and `do`, or it has `otherwise`."
_ALONE: Final[Mapping[str | int, str]] = {"preview": "a port, or an object", "delete": "a path, or an object"}
_EXPECTED: Final[Mapping[str, type[Shape]]] = {
    "call": steps.CallExpectation,
    "ask": steps.AskExpectation,
    "approve": steps.ApproveExpectation,
}
_STEPS: Final = ("do", "otherwise", "together")


def problems_of(error: ValidationError) -> list[Problem]:
    """The problems found by the shape of a scenario, in the order the shape was walked."""
    found = [(_where(entry["loc"]), entry) for entry in error.errors(include_url=False)]
    # A misspelt key is one mistake, though its right spelling is missing as well.
    meant = {
        (*where[:-1], suggest(str(where[-1]), _keys_at(where[:-1]) or ()))
        for where, entry in found
        if entry["type"] == "extra_forbidden"
    }
    return [_problem(where, entry) for where, entry in found if entry["type"] != "missing" or where not in meant]


def _where(location: tuple[str | int, ...]) -> Where:
    # Of a key that is wrong in itself the model says so behind it.
    location = location[:-1] if location[-1:] == ("[key]",) else location
    return tuple(part for part in location if not str(part).startswith(steps.TAG))


def _problem(where: Where, found: Any) -> Problem:
    kind, context, value = found["type"], found.get("ctx", {}), found["input"]
    match kind:
        case "extra_forbidden" if len(where) == 3 and where[0] == "agent" and where[-1] in _RULE:
            return Problem(where[:-1], f"has `{where[-1]}` beside `otherwise`. {_ONE_OF}")
        case "missing" if len(where) == 3 and where[0] == "agent":
            return Problem(where[:-1], f"has no `{where[-1]}`. {_ONE_OF}")
        case "extra_forbidden":
            return Problem(where, f"is not a key here.{_instead(where) or _accepted(where[:-1], str(where[-1]))}")
        case "missing":
            return Problem(where, f"is missing.{_accepted(where[:-1])}")
        case "union_tag_invalid" | "union_tag_not_found":
            return _no_verb(where, value)
        case "null":
            return Problem(where, "has no value. Give it one or leave the key out")
        case "nothing_given":
            return Problem(where, f"is empty and would always hold.{_accepted(where)}")
        case "literal_error":
            meant = _meant(value, context["expected"]) or _after(_instead(where))
            return Problem(where, f"must be {context['expected']}, not {value!r}{meant}")
        case "too_short":
            return Problem(where, "is empty; it needs at least one entry")
        case "string_too_short":
            return Problem(where, "is empty; it needs a text")
        case "string_too_long":
            return Problem(where, f"is longer than {context['max_length']} characters")
        case "greater_than_equal":
            return Problem(where, f"is {value}; the least is {context['ge']:g}")
        case "less_than_equal":
            return Problem(where, f"is {value}; the most is {context['le']:g}")
    if (wanted := _WANTED.get(kind)) is None:
        return Problem(where, f"is not accepted: {found['msg']}")
    hint = _accepted(where) if wanted == "an object" else _instead(where)
    wanted = _ALONE.get(where[-1], wanted) if hint and len(where) > 2 else wanted
    quotes = ". Put it in quotes" if wanted == "text" and isinstance(value, (bool, int, float)) else ""
    return Problem(where, f"must be {wanted}, not {kind_of(value)}{quotes}{hint and '.'}{hint}")


def _no_verb(where: Where, value: Any) -> Problem:
    verbs: Sequence[str] = steps.PARALLEL if "together" in where else list(steps.VERBS)
    accepted = f" Accepted: {', '.join(verbs)}."
    if not isinstance(value, Mapping):
        return Problem(where, f"must be a step, an object with one verb as its key, not {kind_of(value)}.{accepted}")
    keys = [str(key) for key in value if key != steps.REQUIRED]
    if len(keys) == 1:
        if keys[0] in steps.VERBS:
            return Problem((*where, keys[0]), f"cannot be in `together`.{accepted}")
        return Problem((*where, keys[0]), f"is not a verb.{accepted}{_meant_verb(keys[0], verbs)}")
    if not keys:
        empty = "has no verb" if value else "is an empty step"
        return Problem(where, f"{empty}.{accepted}")
    advice = "Indent the arguments below their verb." if value[keys[0]] is None else "Write each as a step of its own."
    return Problem(where, f"has {len(keys)} keys ({', '.join(keys)}), and a step is one verb. {advice}")


def _meant_verb(sent: str, verbs: Sequence[str]) -> str:
    # Verbs are too short for a likeness to show when two letters changed places.
    swapped = next((verb for verb in verbs if sorted(verb) == sorted(sent.lower())), sent)
    return did_you_mean(swapped, verbs)


def _meant(value: Any, expected: str) -> str:
    names = [name.strip("' ") for name in expected.replace(" or ", ",").split(",")]
    return f".{hint}" if isinstance(value, str) and (hint := did_you_mean(value, names)) else ""


def _accepted(where: Where, sent: str | None = None) -> str:
    keys = _keys_at(where)
    if keys is None:
        return ""
    return f" Accepted: {', '.join(keys)}.{did_you_mean(sent, keys) if sent is not None else ''}"


def _after(hint: str) -> str:
    return f".{hint}" if hint else ""


def _instead(where: Where) -> str:
    """What to do instead of a key that is not accepted at a place, or of a value."""
    match where:
        case ("mcp", str(), "script", int()):
            return f" {servers.Connect.instead}"
        case ("mcp", str(), "calls", int()):
            return f" {servers.ToolCall.instead}"
        case ("mcp", str(), "script", int(), str(key)):
            said = servers.Connect.elsewhere.get(key)
        case ("mcp", str(), "calls", int(), str(key)):
            said = servers.ToolCall.elsewhere.get(key)
        case ("mcp", str(), str(key)):
            said = servers.McpServer.elsewhere.get(key)
        case ("faults", int(), str(key)) if key in faults.FaultMatch.model_fields:
            said = f"It belongs at `match.{key}`."
        case ("faults", int(), str(key)):
            said = faults.FaultRequest.elsewhere.get(key)
        case _:
            said = None
    return f" {said}" if said else ""


def _keys_at(where: Where) -> Sequence[str] | None:
    """The keys of the object at a place, by the place's own form."""
    match where:
        case ():
            return keys_of(wire.ScenarioFile)
        case ("mcp", str()):
            return keys_of(servers.McpServer)
        case ("mcp", str(), "script", int()):
            return keys_of(servers.Connect)
        case ("mcp", str(), "calls", int()):
            return keys_of(servers.ToolCall)
        case ("mcp", str(), *_, "tools", str()):
            return keys_of(servers.McpTool)
        case ("faults", int()):
            return tuple(faults.FaultRequest.model_fields)
        case ("faults", int(), "match"):
            return tuple(faults.FaultMatch.model_fields)
        case ("faults", int(), "drip"):
            return tuple(faults.FaultDrip.model_fields)
        case ("agent", int()):
            return (*_RULE, "otherwise", "times")
        case ("agent", int(), "when"):
            return keys_of(wire.When)
        case ("agent", int(), "when", "message"):
            return keys_of(wire.MessageCondition)
        case (*_, str() as verb, "expect") if verb in _EXPECTED:
            return keys_of(_EXPECTED[verb])
        case (*_, "todos", int()):
            return keys_of(steps.Todo)
        case (*_, str() as within, int(), str() as verb) if within in _STEPS and verb in steps.VERBS:
            shape = steps.VERBS[verb]
            return None if shape is None else keys_of(shape)
    return None
