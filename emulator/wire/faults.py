"""HTTP faults, as they are asked for and listed. Control routes and scenario files only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic_core import PydanticCustomError, core_schema

from emulator.wire.common import Maybe, Request, Response

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core.core_schema import CoreSchema


class Or:
    """Marks a number that may be one word instead, so that a refusal tells of both."""

    def __init__(self, number: Any, word: str) -> None:
        self._number = number
        self._word = word

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._check, handler.generate_schema(self._number))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"const": self._word, "type": "string"}]}

    def _check(self, value: Any, number: core_schema.ValidatorFunctionWrapHandler) -> Any:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float | str)
            or (value != self._word and isinstance(value, str))
        ):
            raise PydanticCustomError("literal_error", "neither", {"expected": f"a number or '{self._word}'"})
        return value if isinstance(value, str) else number(value)


Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Amount = Annotated[int, Field(ge=0, le=1_000_000_000)]
Real = Annotated[float, Field(ge=0, le=3600)]
Clock = Annotated[float, Field(ge=0, le=10**9)]


class FaultMatch(Request):
    """Which requests a fault is for: those that have all of it; every one while it is empty."""

    method: Maybe[Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]] = Field(
        default=None, description="The verb."
    )
    path: Maybe[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default=None, description="The decoded path, without the query; `*` stands for one segment."
    )
    nth: Maybe[Count] = Field(
        default=None, description="Only the nth of those that match, from 1; with `times`, that many from it on."
    )
    token: Maybe[Annotated[str, Field(min_length=1, max_length=64)]] = Field(
        default=None, description="The id of the token it comes with."
    )
    session: Maybe[Annotated[str, Field(min_length=1, max_length=64)]] = Field(
        default=None, description="The id of the session it is about."
    )


class FaultDrip(Request):
    """How slowly a stream comes."""

    bytes: Annotated[int, Field(ge=1, le=1_000_000)] = Field(description="So many at a time.")
    seconds: Real = Field(description="Real seconds between.")


class FaultRequest(Request):
    """A fault: which requests, what goes wrong with them, and when. `delay` goes with each of the others."""

    elsewhere: ClassVar[dict[str, str]] = {
        "cut": "It is how the stream ends; `after_event`, `after_bytes` and `inside` say where.",
        "reset": "It is when the connection breaks.",
        "truncate": "It is how many bytes come.",
        "html": "It is the status of the answer.",
        "count": "`times` says how often.",
        "seed": "`probability` is drawn from the setting `seed`.",
        "status": "`error` takes a code of the API, which has a status of its own; `html` takes a status.",
        "at": "`after` says from when on, in seconds of the emulator's clock.",
    }

    match: FaultMatch = Field(default_factory=FaultMatch, description="Which requests.")
    error: Maybe[str] = Field(default=None, description="Refused with this code, and not carried out.")
    message: Maybe[Annotated[str, Field(min_length=1)]] = Field(default=None, description="With `error`: its words.")
    retry_after: Maybe[Annotated[int, Field(ge=0, le=86_400)]] = Field(
        default=None, description="With `error`, where one goes with the code: the seconds of its Retry-After."
    )
    html: Maybe[Annotated[int, Field(ge=400, le=599)]] = Field(
        default=None, description="Answered by a proxy, with this status and a page of HTML, and not carried out."
    )
    empty: Maybe[Literal[True]] = Field(
        default=None, description="The connection is closed without an answer, and nothing is carried out."
    )
    reset: Maybe[Literal["before", "during", "after"]] = Field(
        default=None,
        description="The connection breaks: before it is carried out, in the middle of the answer, or after it was "
        "carried out and before the answer.",
    )
    truncate: Maybe[Amount] = Field(
        default=None, description="Carried out, and closed after so many bytes of an answer that says it is longer."
    )
    twice: Maybe[Literal[True]] = Field(
        default=None, description="A write is carried out twice, as by a proxy that sends it again; the second answers."
    )
    cut: Maybe[Literal["end", "close", "reset"]] = Field(
        default=None, description="A stream ends: properly, with its connection closed, or with it broken off."
    )
    stall: Maybe[Annotated[float | Literal["forever"], Or(Real, "forever")]] = Field(
        default=None, description="A stream sends nothing for so many real seconds, no ping either."
    )
    after_event: Maybe[Amount] = Field(
        default=None, description="With `cut` and `stall`: right after so many events; 0, when nothing is said."
    )
    after_bytes: Maybe[Amount] = Field(default=None, description="With `cut` and `stall`: after so many bytes.")
    inside: Maybe[Literal["frame", "character"]] = Field(
        default=None,
        description="With `cut` and `stall`: in the middle of the next event, or of the next character of several "
        "bytes.",
    )
    duplicate: Maybe[Annotated[int | Literal["all"], Or(Count, "all")]] = Field(
        default=None, description="A stream sends the nth of its events twice, or all of them."
    )
    drip: Maybe[FaultDrip] = Field(default=None, description="A stream comes slowly.")
    retry: Maybe[Annotated[int | Literal["absent"], Or(Amount, "absent")]] = Field(
        default=None, description="The milliseconds a stream tells its reader to wait before it reconnects."
    )
    delay: Maybe[Real] = Field(default=None, description="Real seconds that pass before anything else.")
    times: Maybe[Count] = Field(default=None, description="How many times it happens; always when absent.")
    probability: Maybe[Annotated[float, Field(ge=0, le=1)]] = Field(
        default=None, description="How likely it is for each of them, drawn from the seed."
    )
    after: Maybe[Clock] = Field(default=None, description="Seconds of the emulator's clock until it begins.")
    until: Maybe[Clock] = Field(default=None, description="Seconds of the emulator's clock until it ends.")

    def given(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What was asked for and nothing else: of which requests, and all the rest."""
        rest = {name: getattr(self, name) for name in self.model_fields_set}
        if self.drip is not None:
            rest["drip"] = self.drip.model_dump()
        match = rest.pop("match", None)
        return {} if match is None else match.model_dump(exclude_unset=True), rest


class Fault(Response):
    """A fault as it was asked for, and how often it happened."""

    id: str
    match: dict[str, Any]
    error: str | None = None
    message: str | None = None
    retry_after: int | None = None
    html: int | None = None
    empty: Literal[True] | None = None
    reset: Literal["before", "during", "after"] | None = None
    truncate: int | None = None
    twice: Literal[True] | None = None
    cut: Literal["end", "close", "reset"] | None = None
    stall: float | Literal["forever"] | None = None
    after_event: int | None = None
    after_bytes: int | None = None
    inside: Literal["frame", "character"] | None = None
    duplicate: int | Literal["all"] | None = None
    drip: dict[str, Any] | None = None
    retry: int | Literal["absent"] | None = None
    delay: float | None = None
    times: int | None = None
    probability: float | None = None
    after: float | None = None
    until: float | None = None
    matched: int = Field(description="How many requests were such.")
    hits: int = Field(description="How many of them went wrong.")


class FaultList(Response):
    """The faults, in the order they were added: a request meets the first that is due."""

    faults: list[Fault]
