"""Rows of contract §8: the turn."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

ROWS: Final = (
    Row("turns.shape", "contract §8", "A turn has exactly the fields of the contract, `subagent_id` null."),
    Row("turns.read", "contract §8", "A turn reads alike alone and in the list."),
    Row("turns.not-found", "contract §8", "A turn that does not exist, or is another session's, is not_found."),
    Row("turns.working", "contract §8", "A turn is `working` until it settles, parked or not."),
    Row("turns.completed", "contract §8", "A turn whose agent finishes is `completed`, with no error."),
    Row("turns.failed", "contract §8", "A turn that fails has an `error` of code and message, and an error item."),
    Row("turns.failed-session", "contract §6", "A session whose turn failed reads failed and takes the next message."),
    Row("turns.failed-drops", "contract §8", "What a failed turn still waited for is no longer required."),
    Row("turns.cancelled", "contract §8", "A cancelled turn is `cancelled`, with no error."),
    Row("turns.settled-stays", "contract §8", "A settled turn never moves, whatever comes later."),
    Row("turns.times", "contract §8", "created_at, started_at and completed_at are when it was taken, began, ended."),
    Row("turns.queued", "contract §6", "A queued turn is `working` with no started_at until it begins."),
    Row("turns.artifacts-null", "contract §8", "`artifacts` is null until the turn settles and never after."),
    Row("turns.artifacts-pending", "contract §8", "`artifacts` goes from pending to ready when publication is done."),
    Row("turns.artifacts-partial", "contract §8", "`artifacts` is partial when a file was skipped, which is named."),
    Row("turns.artifacts-skipped", "contract §8", "`artifacts_skipped` is empty when nothing was skipped."),
    Row("turns.reclaimed", "contract §13", "A turn still open when its workspace is reclaimed fails."),
)
