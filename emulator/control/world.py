"""The emulator as a whole: whether it answers, its start over, its clock, its tokens, its settings, its rest."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from emulator import __version__, settings
from emulator.domain.access import DEFAULT_ORGANIZATION, DEFAULT_SCOPES, SCOPES, check_scopes
from emulator.redaction import WITHHELD, scrub_value
from emulator.refusals import invalid, not_found

if TYPE_CHECKING:
    from emulator.control.call import Call
    from emulator.wire import control as wire


async def get_health(call: Call) -> Any:
    """Whether the emulator serves; it does as soon as this answers. Needs no token."""
    return {"status": "ok", "version": __version__}


async def reset(call: Call) -> Any:
    """Start over: sessions, scripts, outages, clock, tokens, settings and journal are as they were at the start."""
    await call.host.reset()
    return {"status": "ok"}


async def get_clock(call: Call) -> Any:
    """The time on the emulator's clock."""
    return {"now": call.world.now()}


async def advance_clock(call: Call) -> Any:
    """Move the clock forward. What falls due happens in order, and the agent comes to rest after each."""
    body: wire.Advance = call.body
    await call.deployment.engine.rest.advance(body.seconds)
    return {"now": call.world.now()}


async def mint_token(call: Call) -> Any:
    """Make an access token, of another organization or with fewer scopes if need be."""
    body: wire.TokenRequest = call.body
    try:
        scopes = check_scopes(DEFAULT_SCOPES if body.scopes is None else body.scopes)
    except ValueError as error:
        raise invalid(f"`scopes`: {error}.") from None
    text, token = call.world.mint(
        scopes=scopes, organization=body.organization or DEFAULT_ORGANIZATION, expires_in=body.expires_in
    )
    token.chosen = body.scopes is not None
    return {
        "id": token.id,
        "token": text,
        "scopes": [scope for scope in SCOPES if scope in token.scopes],
        "organization": token.organization,
        "expires_at": token.expires_at,
    }


async def revoke_token(call: Call) -> Any:
    """Have a token refused from its next request on."""
    token = call.world.access.revoke(call.path["token_id"])
    if token is None:
        raise not_found(f"No token {call.path['token_id']!r}. Its id is what minting it told, not its text.")
    return {"id": token.id, "revoked": True}


async def get_settings(call: Call) -> Any:
    """Every setting by name."""
    return _shown_settings(call)


async def patch_settings(call: Call) -> Any:
    """Change settings. Those that can only be set at the start, and unknown ones, are refused by name."""
    try:
        call.world.settings = settings.changed(call.world.settings, call.body.model_extra, running=True)
    except settings.SettingError as error:
        raise invalid(str(error)) from None
    if "explore" in call.body.model_extra:
        from emulator.exploration.plan import install

        install(call.deployment)
    return _shown_settings(call)


def _shown_settings(call: Call) -> dict[str, Any]:
    """The settings as they are read: a pattern of keys that is a whole key is withheld, in its message too."""
    shown = settings.as_json(call.world.settings)
    for answer in shown["provider_answers"]:
        if (key := answer["key"]) and "*" not in key:
            answer["key"], answer["message"] = WITHHELD, answer["message"].replace(key, WITHHELD)
    cleaned: dict[str, Any] = scrub_value(shown)
    return cleaned


async def get_exploration(call: Call) -> Any:
    """What is explored with, whether that came to pass, and, by the modes in `explore`, what there is to try."""
    from emulator.exploration.plan import Plan

    plan = call.deployment.exploring
    if not isinstance(plan, Plan):
        return {"explore": [], "reached": False, "variants": []}
    return {
        "explore": list(plan.explore),
        "reached": plan.reached,
        "variants": [asdict(variant) for variant in plan.variants()],
    }


async def settle(call: Call) -> Any:
    """Wait until every agent is at rest and no webhook delivery is due, and tell whether it came to that in time."""
    body: wire.SettleRequest = call.body
    seconds = call.world.settings.rest_seconds if body.timeout is None else body.timeout
    return {"at_rest": await call.deployment.engine.rest.settle(seconds)}
