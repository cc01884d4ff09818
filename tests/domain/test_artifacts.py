"""Artifacts: their types, and the tar that is made while it is sent."""

from __future__ import annotations

import io
import tarfile

import pytest

from emulator.domain.artifacts import Archive, Artifact, archive, content_type
from emulator.domain.files import Blob


def artifact(path: str, content: Blob, turn: str = "turn_1") -> Artifact:
    return Artifact("art_1", "s", turn, f"/workspace/{path}", content, content_type(path), 1_767_225_600_999)


def opened(made: Archive) -> tarfile.TarFile:
    data = b"".join(made.chunks())
    assert len(data) == made.size
    return tarfile.open(fileobj=io.BytesIO(data), mode="r|")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.md", "text/markdown"),
        ("b.JSON", "application/json"),
        ("c", "application/octet-stream"),
        ("d.unknown", "application/octet-stream"),
        ("e.tar.gz", "application/gzip"),
        ("f.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("g.mp4", "video/mp4"),
        (".png", "application/octet-stream"),
    ],
)
def test_the_content_type_follows_the_ending(path: str, kind: str) -> None:
    assert content_type(path) == kind


@pytest.mark.parametrize("by_turn", [False, True])
@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("outputs/a.md", Blob.of(b"# A")),
        ("outputs/empty", Blob.of(b"")),
        ("outputs/exact", Blob.of(b"x" * 512)),
        ("outputs/zeros.bin", Blob.of(b"x", 300_000)),
        ("outputs/" + "d/" * 150 + "deep.txt", Blob.of(b"1")),
        ("outputs/" + "n" * 255, Blob.of(b"1")),
        ("outputs/ünï 码\u202e\n.txt", Blob.of(b"1")),
    ],
)
def test_an_archive_gives_every_file_back(path: str, content: Blob, by_turn: bool) -> None:
    with opened(archive([artifact(path, content), artifact("outputs/b", Blob.of(b"2"))], (), by_turn=by_turn)) as tar:
        found = [(member.name, member.isreg(), member.mtime, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    prefix = "turn_1/" if by_turn else ""
    assert found == [
        (prefix + path, True, 1_767_225_600, content.head(content.size)),
        (f"{prefix}outputs/b", True, 1_767_225_600, b"2"),
    ]


def test_an_archive_of_nothing_is_an_empty_tar() -> None:
    made = archive([], (), by_turn=True)
    assert b"".join(made.chunks()) == bytes(1024)
    with opened(made) as tar:
        assert tar.getnames() == []


def test_what_is_lost_is_left_out_and_named_at_the_end() -> None:
    kept = [artifact(f"outputs/{name}", Blob.of(name.encode()), f"turn_{n}") for n, name in enumerate("abc")]
    with opened(archive(kept, ("outputs/a", "/workspace/outputs/c"), by_turn=True)) as tar:
        found = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    assert found == {"turn_1/outputs/b": b"b", "gobare-omitted.txt": b"turn_0/outputs/a\nturn_2/outputs/c\n"}
    assert list(found)[-1] == "gobare-omitted.txt"


def test_an_archive_is_the_same_each_time_it_is_made() -> None:
    made = archive([artifact("outputs/a", Blob.of(b"1", 700))], (), by_turn=False)
    assert b"".join(made.chunks()) == b"".join(made.chunks())
