"""The feed: what slow readers lose, when their streams close, and that they delay nobody (contract §9)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from emulator.domain.world import World
from emulator.render import FrameCodec
from emulator.runtime.feed import BATCH, CLOSE_BYTES, DROP_BYTES, Feed
from emulator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from emulator.runtime.feed import Reader

KIB = 1024
MIB = 1024 * KIB


class Live:
    """A feed of one organization, its log written to by hand."""

    def __init__(self, **settings: Any) -> None:
        self.world = World(Settings(**settings), FrameCodec(), lambda: 0, lambda: 0)
        self.organization = self.world.organization("default")
        self.feed = Feed(self.world)

    def open(
        self, session: str | None = "s", cursor: int | None = None, member: Callable[[str], bool] | None = None
    ) -> Reader:
        return self.feed.open(self.organization, session, token_id="tok", cursor=cursor, member=member)

    def keep(self, text: str, session: str = "s") -> None:
        """Record an event."""
        self.organization.log.append(session, "user.context", {"text": text})
        self.feed.pump(self.organization)

    def show(self, text: str, session: str = "s") -> None:
        """Show a transient frame."""
        self.feed.transient(self.organization, session, "agent.text", {"delta": text})


async def begun(reader: Reader) -> AsyncIterator[bytes]:
    """A reader's chunks, past the reconnect delay."""
    chunks = reader.chunks()
    async with asyncio.timeout(5):
        assert await anext(chunks) == b"retry: 2000\n\n"
    return chunks


async def heard(chunks: AsyncIterator[bytes], last: str) -> list[str]:
    """The first words of every event read up to and with the one that begins so."""
    words: list[str] = []
    async with asyncio.timeout(5):
        async for chunk in chunks:
            for frame in chunk.split(b"\n\n")[:-1]:
                payload = FrameCodec.event(frame + b"\n\n")["payload"]
                words.append(str(payload.get("text", payload.get("delta", payload))).partition(" ")[0])
            if words and words[-1] == last:
                return words
    return words


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a coroutine test on a loop of its own."""

    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


@on_a_loop
async def test_a_reader_within_a_mebibyte_loses_nothing() -> None:
    live = Live()
    chunks = await begun(live.open())
    live.keep("first")
    live.show("shown " + "x" * (1000 * KIB))
    live.keep("last")
    assert await heard(chunks, "last") == ["first", "shown", "last"]


@on_a_loop
async def test_a_reader_past_a_mebibyte_loses_transient_frames_only() -> None:
    live = Live()
    chunks = await begun(live.open())
    live.keep("first " + "x" * (1100 * KIB))
    for n in range(5):
        live.show(f"shown{n}")
        live.keep(f"kept{n}")
    assert await heard(chunks, "kept4") == ["first", "kept0", "kept1", "kept2", "kept3", "kept4"]


@on_a_loop
async def test_a_reader_that_has_caught_up_gets_transient_frames_again() -> None:
    live = Live()
    reader = live.open()
    chunks = await begun(reader)
    live.keep("first " + "x" * (1100 * KIB))
    live.show("dropped")
    live.keep("kept")
    assert await heard(chunks, "kept") == ["first", "kept"]
    live.show("shown")
    live.keep("last")
    assert await heard(chunks, "last") == ["shown", "last"]


@on_a_loop
async def test_transient_frames_that_are_dropped_do_not_close_a_stream() -> None:
    live = Live()
    reader = live.open()
    chunks = await begun(reader)
    for _ in range(12):
        live.show("shown " + "x" * MIB)
    live.keep("kept")
    assert not reader.overrun.done()
    assert (await heard(chunks, "kept"))[-1] == "kept"


@on_a_loop
async def test_a_reader_past_eight_mebibytes_is_closed_and_no_sooner() -> None:
    live = Live()
    reader = live.open()
    await begun(reader)
    for _ in range(7):
        live.keep("x" * MIB)
    assert not reader.overrun.done()
    live.keep("x" * MIB)
    assert reader.overrun.done()
    assert (DROP_BYTES, CLOSE_BYTES) == (MIB, 8 * MIB)


@on_a_loop
async def test_what_was_read_does_not_count() -> None:
    live = Live()
    reader = live.open()
    chunks = await begun(reader)
    for n in range(20):
        live.keep(f"kept{n} " + "x" * MIB)
        assert await heard(chunks, f"kept{n}") == [f"kept{n}"]
    assert not reader.overrun.done()


@on_a_loop
async def test_a_slow_reader_takes_nothing_from_a_fast_one() -> None:
    live = Live()
    slow, fast = live.open(), live.open()
    await begun(slow)
    chunks = await begun(fast)
    for n in range(20):
        live.show(f"shown{n} " + "x" * 400 * KIB)
        live.keep(f"kept{n} " + "x" * 500 * KIB)
        assert await heard(chunks, f"kept{n}") == [f"shown{n}", f"kept{n}"]
    assert slow.overrun.done()
    assert not fast.overrun.done()


@on_a_loop
async def test_readers_at_their_own_pace_read_the_same() -> None:
    live = Live()
    readers = [live.open() for _ in range(3)]
    streams = [await begun(reader) for reader in readers]
    for n in range(3 * BATCH + 7):
        live.keep(f"{n}")
    last = f"{3 * BATCH + 6}"
    for chunks in streams:
        assert await heard(chunks, last) == [f"{n}" for n in range(3 * BATCH + 7)]


@on_a_loop
async def test_what_everybody_has_read_is_not_kept() -> None:
    live = Live()
    reader = live.open()
    chunks = await begun(reader)
    for n in range(10 * BATCH):
        live.keep(f"{n}")
    await heard(chunks, f"{10 * BATCH - 1}")
    live.keep("one more")
    await heard(chunks, "one")
    assert reader._waiting == []


@on_a_loop
async def test_a_replay_is_read_in_batches_that_let_others_run() -> None:
    live = Live()
    for n in range(4 * BATCH):
        live.keep(f"{n}")
    chunks = await begun(live.open(cursor=0))
    ran = 0

    async def other() -> None:
        nonlocal ran
        while True:
            ran += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(other())
    await heard(chunks, f"{4 * BATCH - 1}")
    task.cancel()
    assert ran >= 3


@on_a_loop
async def test_events_recorded_during_a_replay_follow_it_once() -> None:
    live = Live()
    for n in range(2 * BATCH):
        live.keep(f"{n}")
    chunks = await begun(live.open(cursor=0))
    async with asyncio.timeout(5):
        first = await anext(chunks)
    assert first.count(b"\n\n") == BATCH
    live.keep("during")
    live.show("shown")
    words = await heard(chunks, "shown")
    assert words == [*(f"{n}" for n in range(BATCH, 2 * BATCH)), "during", "shown"]


@on_a_loop
async def test_what_nobody_was_told_of_yet_is_replayed_and_not_told_again() -> None:
    live = Live()
    watching = await begun(live.open())
    live.organization.log.append("s", "user.context", {"text": "recorded"})
    chunks = await begun(live.open(cursor=0))
    live.keep("last")
    assert await heard(chunks, "last") == ["recorded", "last"]
    assert await heard(watching, "last") == ["recorded", "last"]


@on_a_loop
async def test_an_ended_reader_finishes_what_was_there() -> None:
    live = Live()
    chunks = await begun(live.open(cursor=0))
    live.keep("kept")
    live.feed.end_session(live.organization, "s")
    assert await heard(chunks, "never") == ["kept"]


@on_a_loop
async def test_a_waiting_reader_is_woken_by_the_end() -> None:
    live = Live()
    reader = live.open()
    chunks = await begun(reader)
    waiting = asyncio.ensure_future(heard(chunks, "never"))
    await asyncio.sleep(0)
    live.feed.end()
    async with asyncio.timeout(5):
        assert await waiting == []


@on_a_loop
async def test_only_members_are_read_and_only_their_transient_frames() -> None:
    live = Live()
    live.keep("before", "a")
    live.keep("hidden", "b")
    chunks = await begun(live.open(None, cursor=0, member=lambda session: session == "a"))
    live.keep("hidden", "b")
    live.show("hidden", "b")
    live.show("shown", "a")
    live.keep("last", "a")
    assert await heard(chunks, "last") == ["before", "shown", "last"]


@on_a_loop
async def test_deltas_are_made_only_while_somebody_reads() -> None:
    live = Live()
    assert not live.feed.watched(live.organization, "s")
    own, every = live.open("s"), live.open(None)
    assert live.feed.watched(live.organization, "s")
    assert live.feed.watched(live.organization, "other")
    live.feed.close(every)
    assert live.feed.watched(live.organization, "s")
    assert not live.feed.watched(live.organization, "other")
    live.feed.close(own)
    assert not live.feed.watched(live.organization, "s")
    assert live.feed.readers() == []


@on_a_loop
async def test_a_quiet_stream_is_pinged_and_a_busy_one_is_not() -> None:
    live = Live(ping_seconds=0.01)
    chunks = await begun(live.open())
    live.keep("kept")
    assert await heard(chunks, "kept") == ["kept"]
    async with asyncio.timeout(5):
        assert await anext(chunks) == b": ping\n\n"
