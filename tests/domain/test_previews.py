"""Previews: names, who holds them, and what is served where."""

from __future__ import annotations

import pytest

from emulator.domain.previews import RESERVED, Addresses, Holder, check_subdomain, default_subdomain, page_at
from emulator.refusals import Refusal

SESSION = "3f9c1b60-4e2a-4d18-9a77-0123456789ab"


def test_the_default_name_is_made_from_the_id() -> None:
    assert default_subdomain(SESSION) == "s-3f9c1b604e2a4d189a77"
    assert check_subdomain("s-3f9c1b604e2a4d189a77", SESSION) == "s-3f9c1b604e2a4d189a77"


def test_every_reserved_name_is_refused_and_would_otherwise_be_usable() -> None:
    for name in RESERVED:
        with pytest.raises(Refusal, match="reserves"):
            check_subdomain(name, SESSION)
        assert check_subdomain(f"{name}-1", SESSION) == f"{name}-1"


@pytest.mark.parametrize(
    ("sent", "meant"), [("Acme", "acme"), ("acme_invoices", "acme-invoices"), ("-acme", "acme"), ("!!", None)]
)
def test_a_near_miss_is_told_what_was_meant(sent: str, meant: str | None) -> None:
    with pytest.raises(Refusal) as refused:
        check_subdomain(sent, SESSION)
    told = refused.value.message
    assert told.endswith(f"Did you mean `{meant}`?") if meant is not None else "Did you mean" not in told


def test_an_address_has_one_holder() -> None:
    addresses, one, other = Addresses(), Holder("a", "1"), Holder("b", "1")
    addresses.take("acme", one)
    addresses.take("acme", one)
    with pytest.raises(Refusal, match="taken"):
        addresses.take("acme", other)
    assert addresses.holder("acme") == one
    addresses.free("acme")
    addresses.free("acme")
    addresses.take("acme", other)
    assert addresses.holder("acme") == other


def test_a_text_is_found_everywhere_and_a_page_at_its_path() -> None:
    assert page_at("a", 1, "/anything") == page_at("a", 1, "/")
    pages = {"/": "start", "a.txt": "a"}
    found = page_at(pages, 1, "/a.txt")
    assert found is not None
    assert found.content == b"a"
    assert page_at(pages, 1, "/b.txt") is None
    assert page_at({}, 1, "/") is None
