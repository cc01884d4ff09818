"""The layers and their laws: imports point down, and what one layer may not know it does not import."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "emulator"

# From the bottom up. A module may import its own layer and those before it.
BASE = ("refusals", "clock", "listening", "ids", "redaction", "settings", "scenario_source", "differences")
LAYERS: dict[str, tuple[str, ...]] = {
    "base": (),
    "wire": ("base",),
    "domain": ("base",),
    "render": ("base", "domain"),
    "runtime": ("base", "domain", "render", "wire"),
    "api": ("base", "domain", "render", "runtime", "wire"),
    "recording": ("base", "domain", "render", "runtime", "wire", "api"),
    "exploration": ("base", "domain", "render", "runtime", "wire", "api"),
    "control": ("base", "domain", "render", "runtime", "wire", "api", "recording", "exploration"),
    "client": ("base", "wire"),
    "edges": ("base", "domain", "render", "runtime", "wire", "api", "recording", "exploration", "control", "client"),
}


def layer_of(module: str) -> str:
    """The layer of `emulator.x.y`."""
    parts = module.split(".")
    if len(parts) == 1:
        return "edges"
    name = parts[1]
    if name in BASE:
        return "base"
    return name if name in LAYERS else "edges"


@cache
def imports_of(path: Path) -> frozenset[str]:
    """The modules a file imports, outside of what only the type checker sees."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                body[:] = [entry for entry in body if not _for_types(entry)]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = list(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


@pytest.mark.parametrize(("module", "path"), modules(), ids=[name for name, _ in modules()])
def test_imports_point_down(module: str, path: Path) -> None:
    layer = layer_of(module)
    allowed = {layer, *LAYERS[layer]}
    for imported in imports_of(path):
        if (
            imported.startswith("emulator.")
            and (PACKAGE.parent / imported.replace(".", "/")).with_suffix(".py").exists()
        ):
            assert layer_of(imported) in allowed, f"{module} ({layer}) imports {imported} ({layer_of(imported)})"


@pytest.mark.parametrize(
    ("layer", "forbidden"),
    [
        ("domain", {"asyncio", "pydantic", "pydantic_core", "mcp", "http", "starlette", "uvicorn", "threading"}),
        ("wire", {"asyncio", "mcp", "starlette", "uvicorn"}),
        ("render", {"asyncio", "mcp", "starlette", "uvicorn"}),
        ("runtime", {"starlette", "uvicorn", "http"}),
        ("client", {"starlette", "uvicorn", "asyncio"}),
    ],
)
def test_a_layer_does_not_know_what_it_must_not(layer: str, forbidden: set[str]) -> None:
    for module, path in modules():
        if layer_of(module) == layer:
            known = {name.split(".")[0] for name in imports_of(path)}
            assert not known & forbidden, f"{module} imports {known & forbidden}"


def test_only_the_clock_reads_the_time() -> None:
    for module, path in modules():
        if module != "emulator.clock":
            assert "time" not in imports_of(path), module
            assert not {name for name in imports_of(path) if name.startswith("datetime")}, module


def test_only_ids_draws_randomness() -> None:
    for module, path in modules():
        assert not imports_of(path) & {"random", "secrets", "uuid"}, module


def test_the_domain_holds_no_state_of_its_own() -> None:
    for module, path in modules():
        if layer_of(module) not in ("domain", "runtime", "api", "control", "render"):
            continue
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            constant = name == "__all__" or ast.unparse(node).startswith(f"{name}: Final")
            mutable = isinstance(node.value, ast.Dict | ast.List | ast.Set)
            assert constant or not mutable, f"{module} has module-level state: {name}"


def test_no_module_is_longer_than_one_can_read() -> None:
    for module, path in modules():
        assert len(path.read_text().splitlines()) <= 450, module


def _run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=PACKAGE.parent, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    heavy = (
        "starlette",
        "uvicorn",
        "pydantic",
        "mcp",
        "yaml",
        "jinja2",
        "asyncio",
        "emulator.server",
        "emulator.embedded",
        "anyio",
    )
    loaded = _run(
        "import sys, pytest; before = set(sys.modules); import emulator.pytest_plugin; "
        "print(' '.join(sorted(set(sys.modules) - before)))"
    ).split()
    assert not [name for name in loaded if name.startswith(heavy)], loaded


def test_a_served_request_does_not_import_mcp_or_the_scenario_libraries() -> None:
    loaded = _run(
        "import sys\nfrom emulator import Emulator\nimport urllib.request\n"
        "with Emulator() as gobare:\n    urllib.request.urlopen(gobare.url + '/v1/openapi.json').read()\n"
        "print(' '.join(sys.modules))"
    ).split()
    assert not [name for name in loaded if name.split(".")[0] in ("mcp", "yaml", "jinja2", "httpx2", "jsonschema")]


def test_the_sdk_is_imported_by_the_first_real_connection_and_tells_nothing() -> None:
    told = _run(
        "import logging, sys\nfrom emulator import Emulator\n"
        "from tests.mcp_web import Web\nfrom tests.support import Api\n"
        "logging.basicConfig(level=1, stream=sys.stdout)\n"
        "with Web() as web, Emulator() as gobare:\n"
        "    for mcp in ('simulated', 'connect'):\n"
        "        gobare.settings.update(mcp=mcp)\n"
        "        tools = [{'type': 'mcp', 'name': 'docs', 'url': web.url + '/mcp', 'authorization': 'tok-9f2b7c'}]\n"
        "        Api(gobare).session({'agent': {'tools': tools}, 'input': 'hello'})\n"
        "        print(mcp, 'mcp' in sys.modules, web.received != [])\n"
    ).splitlines()
    assert [line for line in told if not line.startswith("DEBUG:asyncio:")] == [
        "simulated False False",
        "connect True True",
    ]


def test_the_api_serves_without_its_control_side() -> None:
    answered = _run(
        "import sys\nclass Gone:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.startswith(('emulator.control', 'emulator.recording', 'emulator.exploration')):\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Gone())\n"
        "from emulator import Emulator\nimport urllib.request\n"
        "with Emulator() as gobare:\n    print(urllib.request.urlopen(gobare.url + '/v1/openapi.json').status)\n"
    )
    assert answered.strip() == "200"
