"""Repositories: what is cloned into a workspace, and what a clone says that fails (contract §6)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_SOURCE: Final = "contract §6"

ROWS: Final = (
    Row(
        "repos.any",
        "contract §12",
        "While no repositories are set every owner/name is cloned, on the branch main, and is empty.",
    ),
    Row("repos.branch", _SOURCE, "The branch is the one the repository has; it is null until the clone."),
    Row("repos.files", _SOURCE, "The repository's files are in the workspace when it comes up."),
    Row("repos.seeds", "contract §10", "Seeded files are written after the clone and overwrite none of its files."),
    Row(
        "repos.unknown",
        _SOURCE,
        "One that does not exist fails to clone with Repository not found; the session is made all the same.",
        "The sources refuse a repository up front for want of a GitHub connection alone, and show this clone_error.",
    ),
    Row("repos.case", _SOURCE, "Repositories are found whatever the case of their name, which is kept as sent."),
    Row(
        "repos.clone-error",
        _SOURCE,
        "A clone that fails leaves the reason in clone_error, the branch null and the workspace empty.",
    ),
    Row(
        "repos.silent",
        _SOURCE,
        "A clone that fails is told on the session, by no event and no item.",
        "The sources say to read clone_error and name neither; a file that cannot be written has its error item.",
    ),
    Row("repos.rebuilt", "contract §10", "A rebuilt workspace is cloned again, with what the clone gives then."),
    Row("repos.setting", _SOURCE, "A repository that cannot be one is refused where it is set."),
)
