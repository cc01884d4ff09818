"""Templates: Jinja in its sandbox, cut down to what a scenario needs, and bounded.

Law: a template reads values and makes text or JSON; it reaches no object beside them, draws no
randomness, and its work is counted, so that it ends. This module is the only one that imports
Jinja, and is itself imported only by a scenario that has a template.
"""

from __future__ import annotations

import json
import math
from collections.abc import ItemsView, KeysView, ValuesView
from functools import wraps
from types import BuiltinMethodType, GeneratorType
from typing import TYPE_CHECKING, Any, Final

from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined, meta, nodes
from jinja2.compiler import CodeGenerator
from jinja2.filters import FILTERS
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from emulator.refusals import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from jinja2 import Template as Compiled
    from jinja2.compiler import Frame
    from jinja2.runtime import Context

# Characters built, items made and iterations run, together, in rendering one string.
WORK: Final = 2_000_000
BITS: Final = 4096

_KEPT_FILTERS: Final = (
    "abs",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "first",
    "float",
    "int",
    "items",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "sort",
    "string",
    "title",
    "trim",
    "unique",
    "upper",
)
_TEXT_METHODS: Final = frozenset(
    (
        "capitalize",
        "casefold",
        "count",
        "endswith",
        "find",
        "isalnum",
        "isalpha",
        "isdigit",
        "lower",
        "lstrip",
        "removeprefix",
        "removesuffix",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "title",
        "upper",
    )
)
_REFUSED: Final[Mapping[type[nodes.Node], str]] = {
    nodes.Macro: "macro",
    nodes.CallBlock: "call",
    nodes.FilterBlock: "filter",
    nodes.AssignBlock: "set … endset",
    nodes.Block: "block",
    nodes.Include: "include",
    nodes.Import: "import",
    nodes.FromImport: "import",
    nodes.Extends: "extends",
}


class TemplateProblem(ValueError):
    """A template that is wrong in itself, or that could not be rendered. The message says why."""


class Templates:
    """The templates of one scenario. They share one environment and nothing else."""

    def __init__(self) -> None:
        self._environment = _Sandbox()

    def compile(self, source: str, *, native: bool) -> Template:
        """`source`, ready to be rendered. Raises `TemplateProblem`.

        With `native`, a source that is one `{{ expression }}` and nothing else gives the value itself;
        otherwise, and without `native` always, the result is text.
        """
        environment = self._environment
        try:
            tree = environment.parse(source)
            expression = _sole_expression(tree) if native else None
            _check(tree, environment)
            names = frozenset(meta.find_undeclared_variables(tree)) - set(environment.globals)
            if expression is not None:
                target = nodes.Name("result", "store", lineno=1, environment=environment)
                tree.body = [nodes.Assign(target, expression, lineno=1, environment=environment)]
            compiled = environment.from_string(tree)
        except TemplateSyntaxError as error:
            raise TemplateProblem(_syntax(error)) from None
        except RecursionError:
            raise TemplateProblem("the template is nested too deeply") from None
        return Template(environment, compiled, names, expression is not None)


class Template:
    """A compiled template. `names` are the variables it needs from outside."""

    def __init__(self, environment: _Sandbox, compiled: Compiled, names: frozenset[str], native: bool) -> None:
        self.names = names
        self._environment = environment
        self._compiled = compiled
        self._native = native

    def render(self, scope: Mapping[str, Any]) -> Any:
        """The text, or the JSON value of a native template. Raises `TemplateProblem`."""
        environment = self._environment
        environment.left = WORK
        context = self._compiled.new_context(dict(scope))
        pieces: list[str] = []
        try:
            for piece in self._compiled.root_render_func(context):
                environment.charge(len(piece))
                pieces.append(piece)
            return environment.plain(context.vars["result"]) if self._native else "".join(pieces)
        except TemplateProblem:
            raise
        except RecursionError:
            raise TemplateProblem("the template nests too deeply") from None
        except Exception as error:
            raise TemplateProblem(str(error) or type(error).__name__) from error


class _Generator(CodeGenerator):
    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _Sandbox(ImmutableSandboxedEnvironment):
    code_generator_class = _Generator
    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self) -> None:
        # Without the optimizer nothing is evaluated while compiling, where work is not counted.
        super().__init__(undefined=StrictUndefined, keep_trailing_newline=True, finalize=_text, optimized=False)
        self.left = WORK
        self.globals = {"range": self._range}
        own = {"join": self._join, "replace": self._replace, "round": _round, "sum": _sum, "tojson": _tojson}
        kept: dict[str, Any] = {name: FILTERS[name] for name in _KEPT_FILTERS}
        self.filters = {name: self._counting(function) for name, function in (kept | own).items()}
        self._loop = "_loop"
        self.filters[self._loop] = self._counted

    def charge(self, work: int) -> None:
        """Count work that is about to be done."""
        self.left -= work
        if self.left < 0:
            raise TemplateProblem(f"the template does too much: over {WORK} characters, items or iterations")

    def charged(self, value: Any) -> Any:
        """`value`, counted by its size."""
        if isinstance(value, (str, list, tuple, dict)):
            self.charge(len(value))
        return value

    def joined(self, parts: tuple[Any, ...]) -> str:
        """What `~` makes of its operands."""
        return self._glue("", parts)

    def plain(self, value: Any, depth: int = 0) -> Any:
        """`value` as JSON, copied. Refuses what JSON does not have."""
        self.charge(1)
        if isinstance(value, Undefined):
            str(value)  # raises, naming what is missing
        if depth > 64:
            raise TemplateProblem("the value is nested too deeply")
        match value:
            case None | bool() | int():
                return value
            case float() if math.isfinite(value):
                return value
            case str():
                return str(self.charged(value))
            case list() | tuple() | range() | GeneratorType() | KeysView() | ValuesView() | ItemsView():
                return [self.plain(entry, depth + 1) for entry in value]
            case dict() if all(isinstance(key, str) for key in value):
                return {key: self.plain(entry, depth + 1) for key, entry in value.items()}
        raise TemplateProblem(f"the expression gives {_kind(value)}, which JSON does not have")

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str):
            return attr in _TEXT_METHODS
        return isinstance(obj, (dict, list, LoopContext)) and super().is_safe_attribute(obj, attr, value)

    def is_safe_callable(self, obj: Any) -> bool:
        if obj == self._range:
            return True
        owner = getattr(obj, "__self__", None)
        return isinstance(owner, LoopContext) or (
            isinstance(obj, BuiltinMethodType) and isinstance(owner, (str, dict, list))
        )

    def getattr(self, obj: Any, attribute: str) -> Any:
        # `order.output.items` is the key of that name where there is one, not the method.
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        return __self.charged(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        for value in (left, right):
            if isinstance(value, Undefined):
                str(value)
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            if isinstance(left, int) and isinstance(right, int):
                _check_bits(operator, left, right)
        elif operator == "+":
            self.charge(_length(left) + _length(right))
        elif operator == "*":
            times, repeated = (left, right) if isinstance(left, int) else (right, left)
            self.charge(_length(repeated) * max(times, 0) if isinstance(times, int) else 0)
        else:
            raise TemplateProblem(f"`{operator}` is offered for numbers only")
        return super().call_binop(context, operator, left, right)

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def counting(*args: Any, **kwargs: Any) -> Any:
            return self.charged(function(*args, **kwargs))

        return counting

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.charge(1)
            yield item

    def _range(self, *bounds: int) -> range:
        numbers = range(*bounds)
        # Its own length may not fit the machine's index, so `len` would raise something else.
        first = max(0, (numbers.stop - numbers.start) // numbers.step)
        self.charge(first)
        return numbers

    def _join(self, items: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
        parts = items if attribute is None else (self.getattr(item, attribute) for item in items)
        return self._glue(str(separator), parts)

    def _glue(self, separator: str, parts: Iterable[Any]) -> str:
        texts: list[str] = []
        for part in parts:
            text = str(_text(part))
            self.charge(len(text) + len(separator) + 1)
            texts.append(text)
        return separator.join(texts)

    def _replace(self, text: Any, old: str, new: str) -> str:
        source = str(_text(text))
        self.charge(len(source) + source.count(old) * len(new))
        return source.replace(old, new)


def _check(tree: nodes.Template, environment: _Sandbox) -> None:
    for node in tree.find_all(tuple(_REFUSED)):
        raise TemplateProblem(f"`{_REFUSED[type(node)]}` is not offered in a scenario's templates")
    for used in tree.find_all(nodes.Filter):
        if used.name not in environment.filters:
            offered = sorted(name for name in environment.filters if not name.startswith("_"))
            raise TemplateProblem(f"there is no filter `{used.name}`.{did_you_mean(used.name, offered)}")
    for loop in tree.find_all(nodes.For):
        if loop.recursive:
            raise TemplateProblem("`recursive` is not offered in a scenario's templates")
        counted = nodes.Filter(loop.iter, environment._loop, [], [], None, None, lineno=loop.lineno)
        loop.iter = counted.set_environment(environment)


def _sole_expression(tree: nodes.Template) -> nodes.Expr | None:
    match tree.body:
        case [nodes.Output(nodes=[nodes.TemplateData()])]:
            return None
        case [nodes.Output(nodes=[nodes.Expr() as expression])]:
            return expression
    return None


def _syntax(error: TemplateSyntaxError) -> str:
    where = f" (line {error.lineno} of the template)" if error.lineno > 1 else ""
    return f"{(error.message or 'it is not a template').rstrip('.')}{where}"


def _text(value: Any) -> Any:
    """What a value looks like in a text: JSON, but for text itself."""
    match value:
        case None | bool() | list() | dict():
            return _tojson(value)
    return value


def _tojson(value: Any, indent: int | None = None) -> str:
    if indent is not None and not 0 <= indent <= 8:
        raise TemplateProblem("the indent of `tojson` is from 0 to 8")
    return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)


def _round(value: float, digits: int = 0) -> float:
    return round(value, max(-15, min(int(digits), 15)))


def _sum(items: Iterable[float]) -> float:
    return sum(items)


def _check_bits(operator: str, left: int, right: int) -> None:
    size = 0
    if operator == "*":
        size = left.bit_length() + right.bit_length()
    elif operator == "**" and right > 0:
        size = left.bit_length() * right
    if size > BITS:
        raise TemplateProblem("the number is too large")


def _length(value: Sequence[Any] | Any) -> int:
    return len(value) if isinstance(value, (str, list, tuple)) else 0


def _kind(value: Any) -> str:
    return "a number that is not finite" if isinstance(value, float) else f"a {type(value).__name__}"
