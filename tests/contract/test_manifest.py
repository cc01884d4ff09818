"""The manifest and the tests hold each other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.contract.manifest import ROWS


def marked() -> dict[str, list[str]]:
    """The ids tests are marked with, and where."""
    found: dict[str, list[str]] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.behaviour":
                    for argument in mark.args:
                        value = argument.value if isinstance(argument, ast.Constant) else None
                        assert isinstance(value, str), f"{path.name}: {node.name} computes its ids"
                        found.setdefault(value, []).append(f"{path.name}::{node.name}")
    return found


def test_every_row_has_a_test() -> None:
    assert sorted(set(ROWS) - set(marked())) == []


def test_every_mark_names_a_row() -> None:
    assert sorted(set(marked()) - set(ROWS)) == []


def test_every_contract_test_is_marked() -> None:
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path.name == "test_manifest.py":
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                assert any("behaviour" in mark for mark in marks), f"{path.name}::{node.name} has no row"


def test_a_row_says_where_it_comes_from_and_what_is_promised() -> None:
    for row in ROWS.values():
        assert re.fullmatch(r"[a-z0-9]+([._-][a-z0-9]+)*", row.id), row.id
        assert re.match(r"contract §\d+", row.source), row
        assert row.promise.endswith("."), row
