# SPDX-License-Identifier: Apache-2.0
"""Describe the rights that operations need and the errors of their absence, for the OpenAPI documents.

`openapi_demands.json` has the demands of the examples of each operation. A golden test writes it from the operations.
The privileges follow from the relationship model of the package, the errors from the cards of the object types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.refs import ObjectType
from gateway.access.operation import Audience, HttpOperation
from gateway.fga.compiled import compiled_model
from gateway.fga.model_analysis import ParsedModel
from gateway.fga.sufficient_grants import deciding_grants, levels_above

FILE: Final = Path(__file__).with_name("openapi_demands.json")

#: In place of `grant_select` and the like: the operation demands one such action for each privilege in the request.
GRANT_EACH: Final = "grant_<privilege>"

#: Relations that cannot be granted. They follow from grants on contents and columns.
_DERIVED: Final = frozenset({"traverse", "read_columns"})


class Need(msgspec.Struct, frozen=True, omit_defaults=True):
    """A demand on an object of the type `on`: one of `actions` is enough.

    `sometimes` marks a demand that only some requests have, `optional` one that changes only how the operation is done.
    `enforced` is the action that is enough if an engine enforces restrictions.
    """

    on: str
    actions: list[str]
    sometimes: bool = False
    optional: bool = False
    enforced: str = ""


def rights_text(operations: Sequence[type[HttpOperation]]) -> str:
    """Return the description of the rights and errors of an endpoint in Markdown."""
    needs = _needs()
    paragraphs = []
    for operation in operations:
        heading = "Rights" if len(operations) == 1 else f"Rights for `{operation.name()}`"
        lines = [*_audience(operation), *_lines(needs.get(operation.__name__, []))]
        paragraphs.append("\n".join([f"**{heading}**", "", *(f"- {line}" for line in lines)]))
    # SCIM has one form of errors without these types.
    errors = _errors(
        each
        for operation in operations
        if not operation.is_provisioning()
        for each in needs.get(operation.__name__, [])
    )
    return "\n\n".join([*paragraphs, *([f"**Errors if they are missing:** {errors}."] if errors else [])])


def _needs() -> dict[str, list[Need]]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, list[Need]]) if FILE.is_file() else {}


def _audience(operation: type[HttpOperation]) -> Iterator[str]:
    if operation.open_to is None:
        return
    reason = f": {operation.open_to.reason}" if operation.open_to.reason else ""
    match operation.open_to.audience:
        case Audience.ALL:
            yield f"No token is needed{reason}."
        case Audience.AUTHENTICATED:
            yield f"Every caller with a valid token may send the request{reason}."
        case Audience.SELF:
            yield f"Callers may send the request for themselves{reason}."


def _lines(needs: Iterable[Need]) -> Iterator[str]:
    """Yield a line for each right. The same right on objects of several types has one line."""
    types: dict[tuple[str, str], list[str]] = {}
    for need in needs:
        actions = " or ".join(f"`{each}`" for each in need.actions)
        when = "For some requests: " if need.sometimes else "If the caller has it, used too: " if need.optional else ""
        rest = f"{_given(need.on, need.actions[0])}."
        if need.enforced:
            rest += f" Through an engine that enforces restrictions, `{need.enforced}` is enough."
        types.setdefault((f"{when}{actions} on the", rest), []).append(CARDS[ObjectType(need.on)].words)
    for (right, rest), words in types.items():
        yield f"{right} {_listed(words)}{rest}"


@cache
def _model() -> ParsedModel:
    return ParsedModel(compiled_model())


@cache
def _given(type: str, action: str) -> str:
    """Return the privileges that give an action, on the object or else on the nearest container where one does."""
    levels = levels_above(ObjectType(type))
    deciding = None if action == GRANT_EACH else deciding_grants(_model(), f"can_{action}", levels)
    if deciding is None:
        return ""
    for level, found in zip(levels, deciding.sufficient, strict=True):
        names = [f"`{each}`" for each in sorted(found - _DERIVED)]
        if names:
            above = " or on a container" if level == levels[0] and len(levels) > 1 else ""
            return (
                f", given by {_listed(names)} on {'it' if level == levels[0] else f'the {CARDS[level].words}'}{above}"
            )
    return ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _errors(needs: Iterable[Need]) -> str:
    """Return the types of the errors for absent objects and for missing actions, with their statuses."""
    found: dict[str, None] = {}
    for each in needs:
        if not each.optional:
            card = CARDS[ObjectType(each.on)]
            found |= {f"{error.code} `{error.type}`": None for error in (card.not_found, card.forbidden)}
    return ", ".join(sorted(found, reverse=True))
