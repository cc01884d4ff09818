"""The workspace's files: paths that stay inside, ceilings on what is decoded, what is published."""

from __future__ import annotations

from base64 import b64encode

import pytest

from emulator.domain import files as module
from emulator.domain.files import Blob, Files, UnusablePath, decoded, names, resolve
from emulator.refusals import Refusal


def blob(data: bytes = b"x", size: int | None = None) -> Blob:
    return Blob.of(data, size)


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
        ("e\u0301", "/workspace/e\u0301"),
        ("\u202egpj.exe", "/workspace/\u202egpj.exe"),
        ("a\tb\n", "/workspace/a\tb\n"),
        ("~/a", "/workspace/~/a"),
        ("%2e%2e/a", "/workspace/%2e%2e/a"),
        ("..a/b..", "/workspace/..a/b.."),
        ("é" * 127, "/workspace/" + "é" * 127),
    ],
)
def test_a_path_is_resolved_inside_the_workspace(path: str, absolute: str) -> None:
    assert resolve(path) == absolute


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("../etc/passwd", "/etc/passwd"),
        ("a/../../etc/passwd", "/etc/passwd"),
        ("/etc/passwd", "/etc/passwd"),
        ("//etc/passwd", "/etc/passwd"),
        ("/workspace", "/workspace"),
        ("/workspace/../x", "/x"),
        ("/workspacex/a", "/workspacex/a"),
        ("../../../../..", "/"),
        (".", "/workspace"),
    ],
)
def test_a_path_that_leaves_the_workspace_says_where_it_leads(path: str, where: str) -> None:
    with pytest.raises(UnusablePath, match=f"resolves to {where},"):
        resolve(path)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "empty or hold a NUL"),
        ("a\0b", "empty or hold a NUL"),
        ("a\ud800", "half a surrogate pair"),
        ("a/" * 2048 + "b", "at most 4096 bytes, and this one has 4097"),
        ("d/" + "é" * 128, "at most 255 bytes, and 'é{20}'… has 256"),
    ],
)
def test_an_impossible_path_is_refused(path: str, why: str) -> None:
    with pytest.raises(UnusablePath, match=why):
        resolve(path)


@pytest.mark.parametrize("path", ["outputs/" + "a/" * 126 + "b", "outputs/" + f"{'a' * 250}/" * 16 + "b" * 72])
def test_the_longest_path_that_is_taken_is_written_and_published(path: str) -> None:
    files = Files()
    absolute, _ = files.write(path, blob())
    assert absolute == f"/workspace/{path}"
    for again in (absolute, path):
        assert [published for published, _ in files.take_unpublished()[0]] == [absolute]
        files.unpublish(again)
    assert [published for published, _ in files.take_unpublished()[0]] == [absolute]
    assert files.delete(path) == absolute


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a.txt/b", "it leads through /workspace/a.txt, which is a file"),
        ("a.txt/../b", "it leads through /workspace/a.txt, which is a file"),
        ("d/e.txt/../../b", "it leads through /workspace/d/e.txt, which is a file"),
        ("/workspace/../workspace/a.txt/b", "it leads through /workspace/a.txt, which is a file"),
        ("d", "/workspace/d is a directory"),
        ("x/../d", "/workspace/d is a directory"),
        ("new/", "/workspace/new is a directory"),
        ("new/.", "/workspace/new is a directory"),
        ("new/x/..", "/workspace/new is a directory"),
    ],
)
def test_what_stands_in_the_way_of_a_file_refuses_it(path: str, why: str) -> None:
    files = Files()
    files.write("a.txt", blob())
    files.write("d/e.txt", blob())
    before = files.all()
    with pytest.raises(UnusablePath, match=f"^{why}$"):
        files.write(path, blob(b"2"))
    assert files.all() == before


def test_a_directory_lasts_as_long_as_a_file_is_in_it() -> None:
    files = Files()
    files.write("d/e/1", blob())
    files.write("d/2", blob())
    files.write("d/2", blob(b"again"))
    files.delete("d/2")
    with pytest.raises(UnusablePath):
        files.place("d")
    files.delete("d/e/1")
    assert files.write("d", blob()) == ("/workspace/d", "created")


def test_files_written_together_are_all_written_or_none() -> None:
    files = Files()
    files.write("a", blob(b"old"))
    with pytest.raises(Refusal, match=r"`files\[2\].path` .* leads through /workspace/b, which is a file") as refused:
        files.write_all([("a", blob()), ("b", blob()), ("b/c", blob())], "files")
    assert refused.value.code == "invalid_request"
    assert files.all() == {"/workspace/a": blob(b"old")}
    assert files.write_all([("a", blob()), ("b/c", blob(b"2"))], "files") == [
        ("/workspace/a", blob()),
        ("/workspace/b/c", blob(b"2")),
    ]
    assert files.all() == {"/workspace/a": blob(), "/workspace/b/c": blob(b"2")}


def test_a_copy_of_the_files_goes_its_own_way() -> None:
    files = Files()
    files.write("outputs/a", blob())
    other = files.copy()
    other.write("outputs/b", blob())
    other.delete("outputs/a")
    assert (list(files.all()), list(other.all())) == (["/workspace/outputs/a"], ["/workspace/outputs/b"])
    assert files.take_unpublished()[0] == [("/workspace/outputs/a", blob())]


def test_sent_files_are_decoded() -> None:
    assert decoded([("a.txt", b64encode(b"hi").decode()), ("empty", "")], "files") == [
        ("a.txt", blob(b"hi")),
        ("empty", blob(b"")),
    ]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([("ok", "aGk="), ("../x", "aGk=")], "`files[1].path` must name a file inside /workspace: it resolves to /x"),
        ([("a", "aGk="), ("b/../a", "aGk=")], "`files[1].path` is /workspace/a, as is `files[0].path`"),
        *(
            ([("a", data)], "`files[0].data` is not valid base64")
            for data in ("not base64!", "aGk", "aGk=aGk=", "aGk=\n", " aGk=", "_-8=", "aGk==", "=", "é", "aG\0k=")
        ),
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


def test_a_declared_size_is_made_of_zeros_as_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 4)
    monkeypatch.setattr(module, "_ZEROS", bytes(4))
    for data, size in ((b"", 0), (b"abc", 3), (b"abcdefgh", 8), (b"abcde", 15), (b"", 9)):
        chunks = list(blob(data, size).chunks())
        assert b"".join(chunks) == data.ljust(size, b"\0")
        assert all(1 <= len(chunk) <= 4 for chunk in chunks)
    assert (blob(b"abc", 6).head(5), blob(b"abc", 6).head(9), blob(b"abc").head(2)) == (b"abc\0\0", b"abc\0\0\0", b"ab")
    with pytest.raises(ValueError, match="3 bytes do not fit in a size of 2"):
        blob(b"abc", 2)


def test_a_path_is_found_among_absolute_and_relative_ones() -> None:
    assert names(["b", "/workspace/a"], "/workspace/a")
    assert names(["a"], "/workspace/a")
    assert not names(["a"], "/workspace/b/a")
    assert not names([], "/workspace/a")


def test_only_what_is_new_under_outputs_is_published_once() -> None:
    files = Files()
    assert files.write("/workspace/outputs/a.md", blob(b"1")) == ("/workspace/outputs/a.md", "created")
    assert files.write("src/b.py", blob(b"2")) == ("/workspace/src/b.py", "created")
    assert files.take_unpublished() == ([("/workspace/outputs/a.md", blob(b"1"))], [])
    assert files.take_unpublished() == ([], [])
    assert files.write("outputs/a.md", blob(b"3"))[1] == "modified"
    files.write("outputs/gone.md", blob(b"4"))
    files.delete("outputs/gone.md")
    assert files.take_unpublished() == ([("/workspace/outputs/a.md", blob(b"3"))], [])


def test_what_could_not_be_published_is_published_next_if_it_is_still_there() -> None:
    files = Files()
    files.write("outputs/a", blob(b"1"))
    files.write("outputs/gone", blob(b"2"))
    taken, _ = files.take_unpublished()
    files.delete("outputs/gone")
    for path, _ in taken:
        files.unpublish(path)
    files.unpublish("src/a")
    assert files.take_unpublished() == ([("/workspace/outputs/a", blob(b"1"))], [])


def test_what_is_too_large_is_skipped_with_the_reason() -> None:
    files = Files()
    mebibyte = 1024 * 1024
    sizes = {"a": 200 * mebibyte + 1, "b": 200 * mebibyte, "c": 200 * mebibyte, "d": 100 * mebibyte + 1, "e": 1024}
    for name, size in sizes.items():
        files.write(f"outputs/{name}", blob(b"", size))
    published, skipped = files.take_unpublished()
    assert [path for path, _ in published] == [f"/workspace/outputs/{name}" for name in "bce"]
    assert skipped == [
        {"path": "outputs/a", "reason": "larger than 209715200 bytes"},
        {"path": "outputs/d", "reason": "the turn's files are larger than 524288000 bytes"},
    ]


def test_a_file_that_is_not_there_cannot_be_deleted() -> None:
    with pytest.raises(FileNotFoundError, match="does not exist in the workspace"):
        Files().delete("a")


def test_nothing_is_left_of_a_workspace_that_is_cleared() -> None:
    files = Files()
    files.write("outputs/a", blob())
    files.clear()
    assert (files.all(), files.take_unpublished()) == ({}, ([], []))
    assert files.write("outputs", blob())[1] == "created"
