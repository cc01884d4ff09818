"""Files: seeds, live writes, and reads of the last snapshot (contract §10)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §10"

ROWS: Final = (
    # What is sent
    Row(
        "files.paths",
        _SOURCE,
        "A path is relative to /workspace or absolute below it, and kept to the byte as it was sent.",
    ),
    Row("files.outside", _SOURCE, "A path that resolves outside is refused, and the refusal says where it resolved."),
    Row(
        "files.impossible-path",
        _SOURCE,
        "An empty path, a NUL, a name over 255 bytes, and a path over 4096 bytes or 128 names are refused.",
        "The sources give no lengths; in bytes these are what a Linux file system takes, and the names are ours.",
    ),
    Row(
        "files.in-the-way",
        _SOURCE,
        "A path that leads through a file, or names a directory, is refused, and nothing of the request is written.",
        "Silent; it is what the file system of a sandbox does.",
    ),
    Row(
        "files.twice",
        _SOURCE,
        "One file sent twice in a request is refused, however its path is written.",
        "Silent. A seed never overwrites and a live write does, so the two would keep different ones.",
    ),
    Row("files.base64", _SOURCE, "The data of a file is strict base64; an empty file is a file."),
    Row(
        "files.inline",
        _SOURCE,
        "`type` may be left out, and is inline: there is no file_id, url or file.",
        "One guide sends type file with the text itself as data, which the API's own rules refuse twice.",
    ),
    Row(
        "files.ceilings", _SOURCE, "5 MiB a file, 10 MiB a request and 50 files, decoded, each refused with its number."
    ),
    Row(
        "files.body",
        _SOURCE,
        "A body that writes files takes 1 MiB, like others.",
        "The limits page allows 10 MiB of files and lists no exception to the 1 MiB of a body: the body's ceiling "
        "comes first; the setting files_body_limit lifts it.",
    ),
    Row("files.none", _SOURCE, "A write of no files is refused.", "Silent; there would be nothing to answer."),
    # Seeds
    Row("files.seeds", _SOURCE, "`environment.files` are in the workspace once it has come up, and not before."),
    Row(
        "files.seeds-refused",
        _SOURCE,
        "What is wrong with them is refused before anything exists: no session is left behind.",
    ),
    Row("files.seeds-rebuilt", _SOURCE, "Seeds return when the workspace is built again; live writes do not."),
    Row(
        "files.seeds-keep",
        _SOURCE,
        "Seeds overwrite nothing: neither what the repository brought, nor an edit after a pause.",
    ),
    Row(
        "files.seeds-unwritable",
        _SOURCE,
        "A seed that cannot be written leaves an error item that names it; the others are written, the session opens.",
        "Its words are ours. Scripted by the setting unwritable_files; a directory in its place does it as well.",
    ),
    # Live writes
    Row(
        "files.write",
        _SOURCE,
        "A write answers what it wrote in the order it was sent, path and size, and overwrites.",
        "The answer's paths are relative to the workspace, like a listing's: no page shows one.",
    ),
    Row(
        "files.write-wakes", _SOURCE, "A write starts a workspace or wakes a paused one, which is idle again after it."
    ),
    Row(
        "files.write-running", _SOURCE, "A write reaches the workspace of a turn that runs, and leaves the turn alone."
    ),
    Row("files.write-required", "contract §5", "A required server that is down refuses a write as it does a message."),
    Row(
        "files.write-quiet",
        _SOURCE,
        "A write shows no event of its own, and only the reads of the next snapshot have it.",
        "Silent: file.changed is described for what the agent does.",
    ),
    Row(
        "files.not-ready",
        "contract §5",
        "While a workspace restarts for its new tools a write is 409 conflict, worth another try, and writes nothing.",
        "The length of that time is the setting tools_restart_seconds, 0 by default.",
    ),
    Row("files.write-recovery", "contract §6", "A workspace that cannot be built again refuses a write, and says why."),
    # Reads
    Row("files.missing", _SOURCE, "Before any snapshot the list is empty, its state missing and captured_at null."),
    Row(
        "files.snapshot",
        _SOURCE,
        "Reads show the last snapshot, never the workspace itself; captured_at says when it was taken.",
        "One is taken when a turn settles, when the workspace is paused or reclaimed, and by a refresh: "
        "the pages name the last three and are silent on the first.",
    ),
    Row("files.list", _SOURCE, "A list has files and directories by path, relative, a directory with no size."),
    Row(
        "files.left-out",
        _SOURCE,
        "A snapshot has no .git and no node_modules, and is truncated past 300 MB.",
        "The wake page says the first, and that more than 300 MB are not captured; the OpenAPI document speaks of a "
        "listing cut at a ceiling: here what fits is kept and truncated says that there was more.",
    ),
    Row(
        "files.refresh",
        _SOURCE,
        "A refresh takes a snapshot now, waking or starting the workspace, and answers the list.",
    ),
    Row(
        "files.refresh-query",
        _SOURCE,
        "`?refresh=1` does the same on the list, takes only 1, and needs sessions:write as well.",
        "An older page says the list takes no parameter; the newer document declares this one.",
    ),
    Row(
        "files.withheld",
        _SOURCE,
        "Environment files and key material are listed unreadable, and refused with permission_denied.",
        "Our patterns: .env*, *.pem, *.key, *.p12, *.pfx, *.jks, *.keystore, *.ppk, id_rsa* and so on, .ssh.",
    ),
    Row(
        "files.content",
        _SOURCE,
        "A file is read as text, or as base64 where it is not UTF-8, under its path relative to the workspace.",
        "What counts as text is decided by its first 256 KiB; a NUL in them makes it bytes.",
    ),
    Row("files.content-cut", _SOURCE, "Text past 256 KiB is cut between two characters, and truncated says so."),
    Row(
        "files.content-large",
        _SOURCE,
        "Bytes are never cut: past 5 MiB they are refused, naming the ceiling.",
        "Only text is truncated, by the document; where bytes end is ours.",
    ),
    Row(
        "files.content-path",
        _SOURCE,
        "`path` is required, and is absolute or relative; one that leaves the workspace, or a directory, is refused.",
        "The OpenAPI document declares it optional; without it there is nothing to read.",
    ),
    Row("files.content-missing", _SOURCE, "A file that is not in the snapshot, and any file without one, is 404."),
)
