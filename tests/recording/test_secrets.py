"""What is taken for a secret, and what for words."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import pytest

from emulator.recording.document import Writer
from emulator.recording.recorder import Recorder
from emulator.recording.references import References
from emulator.recording.secrets import Secrets, looks_like_a_credential

if TYPE_CHECKING:
    from pathlib import Path

AWKWARD = 'p@ss/w+rd="q é'


@pytest.mark.parametrize(
    "text",
    [
        "Zk3jQ9vX2mPl8RtY6wBn4HsD",
        "d41d8cd98f00b204e9800998ecf8427e",
        "9Xk2-Lm4pQ_7rT1vW8yZ3aB6cD5eF0gH",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "c2VjcmV0LXZhbHVlLW9mLXNvbWVib2R5LTEyMzQ1Njc4OTA=",
    ],
)
def test_a_run_of_characters_that_looks_drawn_is_suspected(text: str) -> None:
    assert looks_like_a_credential(text)
    secrets = Secrets()
    assert text not in secrets.text(f"it is {text}, you see", ("a", "b"))
    assert list(secrets.suspected) == ["a_b"]


@pytest.mark.parametrize(
    "text",
    [
        "/workspace/outputs/quarterly-report-2026-Q3.md",
        "claude-sonnet-4-6-20250101",
        "internal_error_of_the_sandbox_at_12_30",
        "a sentence with no secret in it, however long it may be, and https://docs.example.com/a/b/c?page=12",
        "SessionCreateRequestValidationError",
        "123e4567-e89b-42d3-a456-426614174000",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "1767225600000",
        "the token count is 12000, the secret: patience",
        "2026-01-01T00:00:00Z",
    ],
)
def test_words_paths_and_names_are_not(text: str) -> None:
    secrets = Secrets()
    assert secrets.text(text, ("a",)) == text
    assert secrets.suspected == {}


@pytest.mark.parametrize(
    "text",
    [
        "gbr_pat_emulator",
        "sk-ant-abcdef0123456789abcdef",
        "ghp_abcdefghij0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "https://user:hunter2@example.com/",
        "Authorization: Bearer abc12345",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_has_the_form_of_a_credential_is_replaced_without_a_word(text: str) -> None:
    secrets = Secrets()
    assert "{{secret:a}}" in secrets.text(text, ("a",))
    assert secrets.suspected == {}


def test_one_value_has_one_name_and_two_values_have_two() -> None:
    secrets = Secrets()
    assert (
        secrets.field("Bearer one-secret", ("tools", "docs", "authorization")) == "{{secret:tools_docs_authorization}}"
    )
    assert secrets.text("I sent one-secret to them", ("x",)) == "I sent {{secret:tools_docs_authorization}} to them"
    assert secrets.field("two-secret", ("tools", "docs", "authorization")) == "{{secret:tools_docs_authorization_2}}"


def test_a_placeholder_somebody_wrote_hides_nothing() -> None:
    secrets = Secrets()
    text = secrets.text("{{secret:Zk3jQ9vX2mPl8RtY6wBn4HsD}}", ("a",))
    assert "Zk3j" not in text


def test_a_name_is_not_made_of_a_secret() -> None:
    secrets = Secrets()
    secrets.text("Ab3jQ9vX2mPl8RtY6wBn4HsD", ("metadata", "Zk3jQ9vX2mPl8RtY6wBn4HsD"))
    assert list(secrets.suspected.items()) == [("metadata_hidden", "metadata › …")]


def test_an_id_has_one_reference_in_paths_fields_and_texts() -> None:
    references = References()
    references.learn_in({"object": "turn", "id": "turn_0123456789abcdef", "session_id": "s-1"}, answer=True)
    assert references.text("turn_0123456789abcdef") == "<turn 1>"
    assert references.text("see turn_0123456789abcdef, of s-1") == "see <turn 1>, of s-1"
    assert references.text("s-1") == "<session 1>"
    references.learn_in({"agent": {"id": "desk"}}, answer=False)
    assert references.text("desk") == "desk", "a client may name an agent by its name"
    assert references.learn("me", "token") is None


@pytest.mark.parametrize(
    "written",
    [
        json.dumps({"key": AWKWARD}),
        json.dumps({"key": AWKWARD}, ensure_ascii=False),
        f"https://hooks.test/{quote(AWKWARD, safe='')}",
        urlencode({"key": AWKWARD}),
        base64.b64encode(AWKWARD.encode()).decode(),
    ],
)
def test_a_known_secret_is_found_in_what_it_was_written_into(written: str) -> None:
    secrets = Secrets()
    secrets.field(AWKWARD, ("key",))
    text = secrets.text(f"it is {written}.", ("x",))
    assert "{{secret:key}}" in text
    assert "ss" not in text.replace("https", "")


def test_a_drawn_value_is_found_in_an_address_that_escapes_it() -> None:
    secrets = Secrets()
    signature = "9XkLm4pQ%2B7rT1vW8yZ%2F3aB6cD5eF0gH%3D"
    assert secrets.text(f"https://blob.test/a?sig={signature}&v=1", ("url",)) == (
        "https://blob.test/a?sig={{secret:url}}&v=1"
    )
    assert secrets.text("https://x.test/?to=https%3A%2F%2Fexample.com%2Fwiki%2F%D0%9F%D1%80", ("url",)).count("{") == 0


def test_the_words_of_the_api_are_withheld_where_they_stand_and_left_alone_elsewhere() -> None:
    secrets = Secrets()
    for value in ("application/json", "sessions", "completed", "agent.thinking", "secret"):
        assert secrets.field(value, ("tools", "docs", "headers")).startswith("{{secret:tools_docs_headers")
        assert secrets.text(f"/v1/{value}", ("path",)) == f"/v1/{value}"
    secrets.field("production", ("tools", "docs", "headers", "stage"))
    assert secrets.text("in production", ("x",)) == "in {{secret:tools_docs_headers_stage}}"


def test_nothing_is_replaced_in_a_placeholder_or_a_reference() -> None:
    secrets = Secrets()
    secrets.field("Secret{{x", ("a",))
    secrets.field("a-long-one", ("secret", "names"))
    secrets.field("names}}", ("b",))
    secrets.field("session 1", ("c",))
    assert secrets.text("a-long-one of <session 1>", ("x",)) == "{{secret:secret_names}} of <session 1>"


def test_data_in_base64_is_one_thing_with_one_name() -> None:
    data = base64.b64encode(b"".join(hashlib.sha256(bytes([n])).digest() for n in range(100))).decode()
    secrets = Secrets()
    assert secrets.text(f"data:image/png;base64,{data}'", ("output",)).count("{{secret:output}}") == 1
    assert list(secrets.suspected) == ["output"]


def test_many_of_one_place_are_declared_by_a_pattern() -> None:
    lines = [hashlib.sha256(bytes([n])).hexdigest() for n in range(30)]
    secrets = Secrets(safe=["file_*lock*", "nothing*"])
    assert secrets.text("\n".join(lines), ("file", "package-lock")) == "\n".join(lines)
    assert secrets.suspected == {}
    assert secrets.unused() == ["nothing*"]
    secrets = Secrets()
    secrets.text("\n".join(lines), ("file",))
    assert list(secrets.suspected) == ["file", *(f"file_{n}" for n in range(2, 31))]


@pytest.mark.parametrize("kind", ["agent.text", "agent.thinking"])
def test_a_secret_is_found_though_a_message_came_while_it_was_told(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it.jsonl"
    recorder = Recorder(Writer(path.open("wb")), Secrets())
    recorder.sessions["s"] = "<session 1>"
    event = {"session_id": "s", "created_at": 1}
    recorder.frame({**event, "type": kind, "payload": {"delta": "it is Zk3jQ9vX2mPl"}})
    recorder.frame({**event, "type": "message.queued", "seq": 1, "payload": {"text": "and?"}})
    recorder.frame({**event, "type": kind, "payload": {"delta": "8RtY6wBn4HsD"}})
    recorder.end()
    assert "Zk3j" not in path.read_text()
    assert "8RtY" not in path.read_text()
    assert list(recorder.secrets.suspected) == [f"event_{kind.replace('.', '_')}_text"]
