"""Artifacts: what turns leave, read, downloaded and deleted (contract §8, §10)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §10"

ROWS: Final = (
    Row(
        "artifacts.published",
        _SOURCE,
        "What is new or changed under /workspace/outputs is published when a turn settles.",
    ),
    Row("artifacts.shape", _SOURCE, "An artifact has its absolute path, size, type and turn, and an event of its own."),
    Row(
        "artifacts.types",
        _SOURCE,
        "The type follows the ending of the name; application/octet-stream where it tells none.",
    ),
    Row("artifacts.each-turn", _SOURCE, "A file that several turns change is a new artifact of each."),
    Row("artifacts.deleted-file", _SOURCE, "A file that is gone before the turn settles is not published."),
    Row(
        "artifacts.any-outcome",
        _SOURCE,
        "A failed and a cancelled turn publish what they left, too.",
        "Said of a cancelled one; silent on a failed one.",
    ),
    Row(
        "artifacts.seeded",
        _SOURCE,
        "A file that a client put under outputs is published with the next turn.",
        "By the letter: it is new there since the last publication.",
    ),
    Row(
        "artifacts.lag",
        "contract §8",
        "Until a turn is published `artifacts` is pending and nothing of it is listed.",
        "How long that takes is the setting publication_seconds, on the emulator's clock.",
    ),
    Row(
        "artifacts.failed",
        "contract §8",
        "A publication that cannot run leaves `artifacts` failed, and its files go out with the next.",
        "Scripted by the setting publication. That they go out with the next is ours.",
    ),
    Row(
        "artifacts.skipped",
        _SOURCE,
        "A file past 200 MiB, and what is past 500 MiB of a turn, is skipped with its reason.",
        "The reason of the second is ours; an older page has 25 MiB in the words of the first.",
    ),
    Row("artifacts.list", "contract §13", "Artifacts are listed in pages, newest first, or oldest first when asked."),
    Row(
        "artifacts.list-turn",
        _SOURCE,
        "`turn_id` lists those of one turn; a turn that is not there is 404.",
        "Silent: a mistyped id would otherwise read as a turn that left nothing.",
    ),
    Row("artifacts.read", _SOURCE, "An artifact is read by its id, under its own session only."),
    Row("artifacts.delete", _SOURCE, "A deleted artifact is gone: from reads, lists, downloads and the archive."),
    Row("artifacts.content", _SOURCE, "Its bytes are downloaded as its own type, with their length."),
    Row("artifacts.content-memory", _SOURCE, "A large artifact is downloaded without being held a second time."),
    Row("artifacts.freed", _SOURCE, "What is deleted takes no memory: a session's files, and an artifact's bytes."),
    Row("artifacts.archive", _SOURCE, "The archive is a tar of regular files under relative names, with its length."),
    Row(
        "artifacts.archive-turn",
        _SOURCE,
        "With `turn_id` an entry is at its path in the workspace, under outputs.",
        "One guide reads ./changes.patch once unpacked, without outputs/; the API's pages: the workspace's own paths.",
    ),
    Row("artifacts.archive-all", _SOURCE, "Without it each entry is behind the id of its turn."),
    Row("artifacts.archive-names", _SOURCE, "Names that are long or not ASCII come out of the archive as they were."),
    Row("artifacts.archive-empty", _SOURCE, "The archive of nothing is an empty tar.", "Silent."),
    Row(
        "artifacts.archive-omitted",
        _SOURCE,
        "An artifact whose copy is gone is left out and named in gobare-omitted.txt at the end.",
        "Scripted by the setting lost_artifacts. Its own download is 404, which is ours.",
    ),
    Row(
        "artifacts.outlive",
        "contract §6",
        "An artifact's own routes keep answering after its session is deleted; all others of the session: 404.",
        "Two pages say artifacts outlive the session. The setting artifacts_outlive_sessions turns it off.",
    ),
    Row("artifacts.settle", "contract §8", "Waiting for rest waits for publications a moment later, too."),
)
