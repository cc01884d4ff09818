"""Two organizations at once, for a moment; `python -m tests.bench hammer` does it for a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.hammer import Tenant, clean, hammer

if TYPE_CHECKING:
    from emulator import Emulator


@pytest.mark.gobare(streams_per_token=1000, streams_per_organization=1000)
def test_nothing_of_one_organization_reaches_another(gobare: Emulator) -> None:
    tenants = [
        Tenant(f"canary-{name}", [gobare.tokens.mint(organization=name).token for _ in range(count)])
        for name, count in (("one", 3), ("two", 2))
    ]
    outcome = hammer(gobare.url, tenants, 2)
    assert outcome.faults == []
    assert all(tenant.told for tenant in tenants)
    clean(gobare.url, tenants)
    assert not any(gobare.report()["undeleted"].values())
