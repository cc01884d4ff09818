"""Model connectors and model credentials (contract §12)."""

from __future__ import annotations

from typing import Final

from tests.contract.manifest import Row

_S: Final = "contract §12"

ROWS: Final = (
    Row("connectors.list", _S, "The ten connectors are listed with all their fields, unpaged and without a token."),
    Row(
        "connectors.facts",
        _S,
        "Anthropic, MiniMax and the four that share sk- are as the pages show them; the rest is made up.",
        "The pages show one connector in full and name the others.",
    ),
    Row("credentials.create", _S, "A key alone connects a model: provider, model and label follow from it."),
    Row("credentials.fields", _S, "Provider, model, label, address and default can be sent."),
    Row("credentials.prefix", _S, "The longest known prefix of a key says whose it is."),
    Row("credentials.shared-prefix", _S, "A key that begins with sk- only is refused, asking which of four it is of."),
    Row(
        "credentials.no-prefix",
        _S,
        "A key with no known beginning is refused, asking for the provider and listing all.",
        "Pages are silent; a key is not offered to anybody it may not belong to.",
    ),
    Row(
        "credentials.provider-wins",
        _S,
        "A provider that is sent is believed, whatever the key begins with.",
        "Pages are silent; a proxy may issue keys of any shape.",
    ),
    Row("credentials.provider-unknown", _S, "An unknown provider is refused with the list and what was meant."),
    Row(
        "credentials.custom",
        _S,
        "custom needs an address and a model.",
        "Pages are silent; it has a default of neither.",
    ),
    Row(
        "credentials.base-url", _S, "An address must be http or https with a host. It is never called and never shown."
    ),
    Row("credentials.default-first", _S, "The first connection is the default, whatever it asks for."),
    Row("credentials.default-moves", _S, "A later one with default true becomes the default; otherwise it does not."),
    Row("credentials.default-boolean", _S, "A default that is no boolean is refused."),
    Row("credentials.same", _S, "The same key, model and address again answer 200 with the connection there is."),
    Row(
        "credentials.same-unchanged",
        _S,
        "Such a repeat changes nothing, label and default included, asks no provider and shows last4 and verified.",
        "The page calls it a retry, not a second connection.",
    ),
    Row("credentials.ceiling", _S, "At most 25 connections: past it 400 names the DELETE that frees one."),
    Row("credentials.create-only", _S, "last4 and verified are in the answer to a create and nowhere else."),
    Row(
        "credentials.short-key",
        _S,
        "last4 is empty for a key of fewer than eight characters.",
        "Four of them would be most of it.",
    ),
    Row("credentials.withheld", _S, "A key and an address come out nowhere, refusals, journal and settings included."),
    Row(
        "credentials.rejected", _S, "A key the provider rejects is refused with the provider's own words, less the key."
    ),
    Row("credentials.no-model", _S, "A model that is not on the key is refused by its name."),
    Row("credentials.unreachable", _S, "A provider that cannot be reached is 502 provider_error with a wait."),
    Row("credentials.nothing-written", _S, "A refused connection is not kept."),
    Row("credentials.list", _S, "Connections are listed newest first, in pages, without an order parameter."),
    Row("credentials.seeded", _S, "A fresh organization has the connections of the settings, the first the default."),
    Row("credentials.delete", _S, "A deleted connection is gone, and its sessions run on the default one's model."),
    Row("credentials.delete-default", _S, "With the default gone they run on the newest one."),
    Row(
        "credentials.new-default",
        _S,
        "That newest one is the default from then on.",
        "Pages name where sessions go; an organization with connections always has a default.",
    ),
    Row(
        "credentials.moved-to",
        _S,
        "moved_to names where sessions would go, also when there were none; null only when nothing is left.",
        "The document says null when none is left, and no more.",
    ),
    Row("credentials.delete-last", _S, "With none left sessions have no model, and none of them counts as moved."),
    Row(
        "credentials.no-model-turn",
        _S,
        "The next turn of such a session fails and says why, as provider_unauthorized.",
        "The page says that the turn will say so; the code is the one for a credential somebody has to see to.",
    ),
    Row("credentials.not-switching", _S, "A new connection moves no session; a PATCH does."),
    Row("credentials.unknown", _S, "An unknown connection and another organization's are 404 in the same words."),
)
