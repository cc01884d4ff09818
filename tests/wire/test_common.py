"""What shapes have in common says the same as the rules it stands for."""

from __future__ import annotations

import jsonschema_rs

from emulator.wire.common import NOT_BLANK


def test_the_document_calls_blank_what_the_rules_call_blank() -> None:
    schema = jsonschema_rs.validator_for({"type": "string", **NOT_BLANK})
    characters = [chr(code) for code in (*range(0x3100), *range(0xFE00, 0x10000))]
    assert [hex(ord(each)) for each in characters if schema.is_valid(each) != bool(each.strip())] == []
    assert not schema.is_valid("")
