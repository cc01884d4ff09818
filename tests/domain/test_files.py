"""The workspace's files: paths that stay inside, ceilings on what is decoded, what is published."""

from __future__ import annotations

from base64 import b64encode

import pytest

from emulator.domain import files as module
from emulator.domain.files import Files, OutsideWorkspace, content_type, decoded, resolve
from emulator.refusals import Refusal


@pytest.mark.parametrize(
    ("path", "absolute"),
    [
        ("a.md", "/workspace/a.md"),
        ("/workspace/a.md", "/workspace/a.md"),
        ("outputs/../a.md", "/workspace/a.md"),
        ("./x//y", "/workspace/x/y"),
        ("//workspace/a", "/workspace/a"),
        ("/workspace/../workspace/a", "/workspace/a"),
        ("ünï/码", "/workspace/ünï/码"),
    ],
)
def test_a_path_is_resolved_inside_the_workspace(path: str, absolute: str) -> None:
    assert resolve(path) == absolute


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("../etc/passwd", "/etc/passwd"),
        ("/etc/passwd", "/etc/passwd"),
        ("/workspace", "/workspace"),
        ("/workspace/../x", "/x"),
        ("/workspacex/a", "/workspacex/a"),
        (".", "/workspace"),
    ],
)
def test_a_path_that_leaves_the_workspace_says_where_it_leads(path: str, where: str) -> None:
    with pytest.raises(OutsideWorkspace, match=f"resolves to {where},"):
        resolve(path)


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_an_impossible_path_is_refused(path: str) -> None:
    with pytest.raises(OutsideWorkspace, match="empty or hold a NUL"):
        resolve(path)


def test_sent_files_are_decoded_to_absolute_paths() -> None:
    assert decoded([("a.txt", b64encode(b"hi").decode())], "files") == [("/workspace/a.txt", b"hi")]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([("ok", "aGk="), ("../x", "aGk=")], "`files[1].path` must stay inside /workspace: it resolves to /x"),
        ([("a", "not base64!")], "`files[0].data` is not valid base64"),
        ([("a", "aGk")], "`files[0].data` is not valid base64"),
    ],
)
def test_a_file_that_is_wrong_is_named(sent: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(Refusal) as refused:
        decoded(sent, "files")
    assert refused.value.code == "invalid_request"
    assert said in refused.value.message


def test_the_ceilings_hold_for_what_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE_BYTES", 10)
    monkeypatch.setattr(module, "FILES_BYTES", 15)
    ten = b64encode(b"x" * 10).decode()
    with pytest.raises(Refusal, match="at most 10 bytes decoded; 11 were sent"):
        decoded([("a", b64encode(b"x" * 11).decode())], "files")
    with pytest.raises(Refusal, match="at most 15 bytes decoded in all; 20 were sent"):
        decoded([("a", ten), ("b", ten)], "files")
    assert len(decoded([("a", ten)], "files")) == 1


def test_only_what_is_new_under_outputs_is_published_once() -> None:
    files = Files()
    assert files.write("/workspace/outputs/a.md", b"1") == ("/workspace/outputs/a.md", "created")
    assert files.write("src/b.py", b"2") == ("/workspace/src/b.py", "created")
    assert files.take_unpublished() == ([("/workspace/outputs/a.md", b"1")], [])
    assert files.take_unpublished() == ([], [])
    assert files.write("outputs/a.md", b"3")[1] == "modified"
    files.write("outputs/gone.md", b"4")
    files.delete("outputs/gone.md")
    assert files.take_unpublished() == ([("/workspace/outputs/a.md", b"3")], [])


def test_what_is_too_large_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ARTIFACT_BYTES", 5)
    monkeypatch.setattr(module, "ARTIFACTS_BYTES", 8)
    files = Files()
    for name, size in (("a", 6), ("b", 5), ("c", 5), ("d", 3)):
        files.write(f"outputs/{name}", b"x" * size)
    published, skipped = files.take_unpublished()
    assert [path for path, _ in published] == ["/workspace/outputs/b", "/workspace/outputs/d"]
    assert skipped == [
        {"path": "outputs/a", "reason": "larger than 5 bytes"},
        {"path": "outputs/c", "reason": "the turn's files are larger than 8 bytes"},
    ]


def test_a_file_that_is_not_there_cannot_be_deleted() -> None:
    with pytest.raises(FileNotFoundError, match="does not exist in the workspace"):
        Files().delete("a")


def test_the_content_type_follows_the_ending() -> None:
    assert [content_type(path) for path in ("a.md", "b.JSON", "c", "d.unknown")] == [
        "text/markdown",
        "application/json",
        "application/octet-stream",
        "application/octet-stream",
    ]
