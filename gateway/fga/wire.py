# SPDX-License-Identifier: Apache-2.0
"""The bodies of OpenFGA's requests and responses. An incomplete or contradictory response raises an error."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from gateway.access.dependency_errors import ConditionConflict, DecisionEngineUnavailable, WriteOutcomeUnknown

_MISSING_CONTEXT = re.compile(r"failed to evaluate relationship condition: .* is missing context parameters", re.DOTALL)
_OTHER_CONDITION = "already exists with a different condition"
_NO_MODEL = "authorization_model_not_found"
_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")

Answer = TypeVar("Answer")


class Condition(msgspec.Struct, frozen=True):
    """The condition of a tuple: its name in the model and the values stored with the tuple."""

    name: str
    context: Mapping[str, Any] = {}


class FgaTuple(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tuple with names from `gateway.fga.names`, or a check whether `user` has the `relation` on `object`."""

    user: str
    relation: str
    object: str
    condition: Condition | None = None


class TuplesRefused(Exception):
    """OpenFGA rejected the tuples, for example because of an unknown relation or a wrong type. Nothing was written."""


class _ItemError(msgspec.Struct):
    message: str = ""


class Item(msgspec.Struct):
    """The result of one check: allowed or denied, or an error."""

    allowed: bool | None = None
    error: _ItemError | None = None


class BatchAnswer(msgspec.Struct):
    """The results of a batch of checks, by correlation id."""

    result: dict[str, Item]


class _Read(msgspec.Struct):
    key: FgaTuple


class Page(msgspec.Struct):
    """A page of stored tuples. The last page has no token."""

    tuples: list[_Read]
    continuation_token: str = ""


class _Object(msgspec.Struct):
    object: str


class Streamed(msgspec.Struct):
    """A line of a streamed list: a result or an error."""

    result: _Object | None = None


class Store(msgspec.Struct):
    """A store of OpenFGA."""

    id: str


class _Refusal(msgspec.Struct):
    code: str = ""
    message: str = ""


async def lines_of(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the complete lines of a body.

    An incomplete last line is dropped, because the connection may have broken.
    """
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line


def bare(check: FgaTuple) -> FgaTuple:
    """Return the check without a condition, because only stored tuples have conditions."""
    return check if check.condition is None else FgaTuple(check.user, check.relation, check.object)


def holds(item: Item | None, check: FgaTuple) -> bool:
    """Return True if the check is allowed, False if it is denied or if its condition lacks context.

    Raises DecisionEngineUnavailable for a missing or contradictory result and for every other error.
    """
    if item is None or (item.allowed is None) == (item.error is None):
        raise DecisionEngineUnavailable(f"OpenFGA returned no answer for {check.relation} on {check.object}.")
    if item.error is None:
        return item.allowed is True
    if _MISSING_CONTEXT.match(item.error.message):
        return False
    raise DecisionEngineUnavailable(f"OpenFGA cannot decide {check.relation} on {check.object}: {item.error.message}")


class ModelNotFound(DecisionEngineUnavailable):
    """The store has no model with the id of the request."""


def refuse(status: int, answer: bytes) -> NoReturn:
    """Raise DecisionEngineUnavailable for a response to a read or a check whose status is not 200.

    It is ModelNotFound if the store lacks the model.
    """
    refusal = _refusal(answer)
    require_accepted_key(status)
    if refusal.code == _NO_MODEL:
        raise ModelNotFound(refusal.message)
    raise DecisionEngineUnavailable(f"OpenFGA answered with status {status}: {refusal.code} {refusal.message}")


def refuse_write(status: int, answer: bytes) -> NoReturn:
    """Raise the error of `FgaClient.write` for a response whose status is not 200.

    Raises ConditionConflict, TuplesRefused, WriteOutcomeUnknown (server errors) or DecisionEngineUnavailable.
    """
    refusal = _refusal(answer)
    if status == 409 and _OTHER_CONDITION in refusal.message:
        raise ConditionConflict(refusal.message)
    if status in (400, 422):
        raise TuplesRefused(f"{refusal.code}: {refusal.message}")
    if status >= 500:
        raise WriteOutcomeUnknown(f"OpenFGA answered a write with status {status}: {refusal.code} {refusal.message}")
    require_accepted_key(status)
    raise DecisionEngineUnavailable(f"OpenFGA rejected a write with status {status}: {refusal.code} {refusal.message}")


def require_accepted_key(status: int | None) -> None:
    """Raise DecisionEngineUnavailable with the remedy if the status of a response means a wrong API key."""
    if status in (401, 403):
        raise DecisionEngineUnavailable(
            f"OpenFGA rejected the API key with status {status}. Correct LAKEGATE__OPENFGA__API_KEY."
        )


def unreachable(url: str, kind: type[Exception]) -> DecisionEngineUnavailable:
    """Return the error for the case that OpenFGA accepts no connection. `kind` is the error of the HTTP client."""
    return DecisionEngineUnavailable(
        f"OpenFGA at {origin(url)} cannot be reached ({kind.__name__}). Start it, or correct "
        "LAKEGATE__OPENFGA__ENDPOINT."
    )


def origin(url: str) -> str:
    """Return the address in a URL, without user names, passwords and paths."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def decoded(answer: bytes, kind: type[Answer]) -> Answer:
    """Decode the response as a `kind`. Raises DecisionEngineUnavailable if it does not match."""
    try:
        return msgspec.json.decode(answer, type=kind, strict=True)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DecisionEngineUnavailable(f"The response of OpenFGA does not have the expected form: {error}.") from None


def require_ulid(name: str, value: str) -> None:
    """Raise ValueError if the id is not a ULID."""
    if _ULID.fullmatch(value) is None:
        raise ValueError(f"The id of a {name} of OpenFGA must be a ULID of 26 characters, not {value!r}.")


def is_about_members(check: FgaTuple) -> bool:
    """Return True if the check is about the members of a role."""
    # Encoded ids contain no `#`, so a `#` precedes the relation of a role's members.
    return "#" in check.user


def _refusal(answer: bytes) -> _Refusal:
    try:
        return msgspec.json.decode(answer, type=_Refusal)
    except (msgspec.DecodeError, RecursionError):
        return _Refusal()
