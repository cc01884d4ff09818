"""What webhooks tell of, read from the event log of an organization whose time stands still."""

from __future__ import annotations

import pytest

from emulator.domain.notices import Notice, Notices
from emulator.domain.session import Agent, Session
from emulator.domain.world import Organization, World
from emulator.render import FrameCodec
from emulator.settings import Settings

NOW = 1_000


@pytest.fixture
def organization() -> Organization:
    organization = World(Settings(), FrameCodec(), lambda: NOW, lambda: NOW).organization("acme")
    organization.webhooks.subscribe("https://you.example.com/", (), NOW)
    return organization


def opened(organization: Organization) -> Session:
    session = Session(
        organization.next_session_id(), log=organization.log, ids=organization.ids, now=NOW, agent=Agent(None, None)
    )
    organization.add(session)
    return session


def shown(notices: list[Notice]) -> list[tuple[str, int]]:
    return [(notice.type, notice.created_at) for notice in notices]


def test_two_at_the_same_moment_are_kept_apart(organization: Organization) -> None:
    notices, session = Notices(), opened(organization)
    turn = session.open_turn("hello", NOW)
    session.start(turn)
    for _ in range(3):
        session.ask(turn, "question", "Which?", {}, ("question.asked", {"question": "Which?"}))
    assert shown(notices.read(organization)) == [
        ("session.created", NOW),
        ("session.working", NOW),
        ("session.action_required", NOW),
        ("session.action_required", NOW + 1),
        ("session.action_required", NOW + 2),
    ]
    session.ask(turn, "question", "Which?", {}, ("question.asked", {"question": "Which?"}))
    assert shown(notices.read(organization)) == [("session.action_required", NOW + 3)]


def test_two_sessions_may_share_a_moment(organization: Organization) -> None:
    notices = Notices()
    for _ in range(2):
        opened(organization)
    assert shown(notices.read(organization)) == [("session.created", NOW)] * 2


def test_what_nobody_subscribed_to_is_passed_over(organization: Organization) -> None:
    notices = Notices()
    (subscription,) = organization.webhooks.subscriptions
    organization.webhooks.remove(subscription.id)
    session = opened(organization)
    turn = session.open_turn("hello", NOW)
    session.start(turn)
    assert notices.read(organization) == []
    organization.webhooks.subscribe("https://you.example.com/", (), NOW)
    assert notices.read(organization) == []
    session.settle(turn, "complete")
    assert [notice.type for notice in notices.read(organization)] == ["session.idle", "turn.completed"]


def test_a_session_deleted_before_anybody_looked_is_not_told_of(organization: Organization) -> None:
    notices, first, second = Notices(), opened(organization), opened(organization)
    organization.remove(second)
    assert [notice.session for notice in notices.read(organization)] == [first]
    third = opened(organization)
    assert [notice.session for notice in notices.read(organization)] == [third]


def test_what_is_remembered_is_bounded(organization: Organization) -> None:
    times = iter(range(0, 10**9, 100))
    organization = World(Settings(), FrameCodec(), lambda: NOW, lambda: next(times)).organization("acme")
    organization.webhooks.subscribe("https://you.example.com/", (), NOW)
    notices, told = Notices(), 0
    for n in range(1500):
        session = opened(organization)
        session.created_at = n * 100
        told += len(notices.read(organization))
        organization.remove(session)
    assert told == 1500
    # A minute of them is 600; no more than twice that is kept.
    assert len(notices._latest) <= 1201


def test_what_is_not_old_yet_is_not_looked_through_with_every_notice(organization: Organization) -> None:
    notices = Notices()
    for _ in range(1100):
        opened(organization)
    notices.read(organization)
    known = notices._latest
    for _ in range(100):
        opened(organization)
        notices.read(organization)
    assert notices._latest is known
