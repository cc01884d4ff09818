"""Snapshots: what a listing shows, what is withheld, and how a file is read."""

from __future__ import annotations

import pytest

from emulator.domain.files import Blob, Files
from emulator.domain.snapshots import Entry, Snapshot, capture, read, withheld
from emulator.refusals import Refusal


def snapshot(**files: bytes) -> Snapshot:
    return of({path: Blob.of(content) for path, content in files.items()})


def of(files: dict[str, Blob]) -> Snapshot:
    workspace = Files()
    for path, content in files.items():
        workspace.write(path, content)
    return capture(workspace, 7)


def test_a_listing_has_files_and_the_directories_above_them_by_path() -> None:
    shown = of({"src/b/c.py": Blob.of(b"12"), "a.md": Blob.of(b""), "src/z.py": Blob.of(b"1"), ".env": Blob.of(b"S=1")})
    assert shown.entries() == [
        Entry(".env", 3, readable=False),
        Entry("a.md", 0, readable=True),
        Entry("src", None, readable=False),
        Entry("src/b", None, readable=False),
        Entry("src/b/c.py", 2, readable=True),
        Entry("src/z.py", 1, readable=True),
    ]
    assert (shown.captured_at, shown.truncated) == (7, False)


def test_a_snapshot_stays_as_it_was_taken() -> None:
    files = Files()
    files.write("a", Blob.of(b"1"))
    before = capture(files, 1)
    files.write("a", Blob.of(b"22"))
    files.write("b", Blob.of(b"1"))
    assert before.entries() == [Entry("a", 1, readable=True)]


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".env.local",
        ".envrc",
        "app/.ENV",
        "server.pem",
        "tls/private.KEY",
        "id_rsa",
        "id_ed25519.pub",
        ".ssh/config",
        "a.p12",
        "a.pfx",
        "a.jks",
        "a.keystore",
        "a.ppk",
    ],
)
def test_environment_files_and_key_material_are_withheld(path: str) -> None:
    assert withheld(path)


@pytest.mark.parametrize(
    "path", ["env", "a.env", "environment.ts", "monkey", "keys.md", "pem", "my_id_rsa.md", "a.key.md"]
)
def test_what_only_looks_like_it_is_not(path: str) -> None:
    assert not withheld(path)


@pytest.mark.parametrize("path", [".git/config", "web/node_modules/x/index.js"])
def test_version_control_and_packages_are_left_out(path: str) -> None:
    assert of({path: Blob.of(b""), "kept": Blob.of(b"")}).entries() == [Entry("kept", 0, readable=True)]
    assert of({".gitignore": Blob.of(b"")}).entries() == [Entry(".gitignore", 0, readable=True)]


def test_a_snapshot_takes_as_many_files_as_fit() -> None:
    large = Blob.of(b"", 200_000_000)
    whole = of({"a": large, "b": Blob.of(b"", 100_000_000)})
    assert (len(whole.entries()), whole.truncated) == (2, False)
    cut = of({"c": Blob.of(b"1"), "a": large, "b": Blob.of(b"", 100_000_001)})
    assert ([entry.path for entry in cut.entries()], cut.truncated) == (["a", "c"], True)


def text_of(content: Blob) -> tuple[str | None, bool]:
    found = read(of({"a": content}), "a")
    return found.text, found.truncated


def test_text_is_cut_between_characters() -> None:
    ceiling = 256 * 1024
    assert text_of(Blob.of(b"x" * ceiling)) == ("x" * ceiling, False)
    assert text_of(Blob.of(b"x" * (ceiling + 1))) == ("x" * ceiling, True)
    assert text_of(Blob.of(b"x" * (ceiling - 1) + "é".encode())) == ("x" * (ceiling - 1), True)
    assert text_of(Blob.of(b"x" * (ceiling - 2) + "码".encode() * 2)) == ("x" * (ceiling - 2), True)
    assert text_of(Blob.of(b"")) == ("", False)


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe", b"a\0b", b"caf\xe9", "é".encode()[:1], b"x" * 262_142 + b"\xe9xx", b"\xed\xa0\x80"],
)
def test_what_is_not_text_is_read_whole(data: bytes) -> None:
    found = read(of({"a": Blob.of(data)}), "a")
    assert (found.text, found.data, found.truncated) == (None, data, False)


def test_bytes_of_a_declared_size_are_read_whole_up_to_a_ceiling() -> None:
    five = 5 * 1024 * 1024
    assert read(of({"a": Blob.of(b"x", five)}), "a").data == b"x".ljust(five, b"\0")
    with pytest.raises(Refusal, match="is not text and has 5242881 bytes; 5242880 is the most") as refused:
        read(of({"a": Blob.of(b"x", five + 1)}), "a")
    assert refused.value.code == "invalid_request"


@pytest.mark.parametrize("path", ["src/a.py", "/workspace/src/a.py", "./src/../src//a.py"])
def test_a_path_is_read_however_it_is_written(path: str) -> None:
    found = read(of({"src/a.py": Blob.of(b"1")}), path)
    assert (found.path, found.text, found.captured_at) == ("src/a.py", "1", 7)


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("../a", "invalid_request", "`path` must name a file inside /workspace: it resolves to /a"),
        ("/etc/passwd", "invalid_request", "it resolves to /etc/passwd"),
        ("a\0", "invalid_request", "NUL"),
        ("src", "invalid_request", "/workspace/src is a directory"),
        ("sr", "not_found", "no file '/workspace/sr'"),
        ("src/a.py/b", "not_found", "no file"),
        (".env", "permission_denied", "'.env' is withheld"),
        (".env.local", "not_found", "no file"),
    ],
)
def test_what_cannot_be_read_is_refused(path: str, code: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        read(of({"src/a.py": Blob.of(b"1"), ".env": Blob.of(b"S=1")}), path)
    assert refused.value.code == code
    assert said in refused.value.message


def test_without_a_snapshot_nothing_is_found() -> None:
    with pytest.raises(Refusal, match="no snapshot yet") as refused:
        read(None, "a")
    assert refused.value.code == "not_found"
