# SPDX-License-Identifier: Apache-2.0
"""The random values of a probe, and the verdict on the output of an engine. Pure, apart from random numbers."""

from __future__ import annotations

import secrets
from datetime import datetime
from hmac import compare_digest
from typing import Final
from uuid import UUID

import msgspec

from gateway.protocol.engine_probes import CanaryRow

ROWS: Final = 3
_BYTES: Final = 16
_FRAGMENT: Final = 10
"""An output with this many successive characters of a hidden value shows the value. Clients may cut or wrap values."""


class Challenge(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """An open probe as it is stored. `table` is the name of the canary."""

    id: UUID
    table: str
    rows: tuple[CanaryRow, ...]
    created_by: str
    expires_at: datetime


class ProbeResult(msgspec.Struct, frozen=True):
    """The verdict on an output, and its reason. The reason contains no value of the canary."""

    passed: bool
    reason: str


def new_rows() -> tuple[CanaryRow, ...]:
    """Return the rows of a canary. Every value is random, and no value can be derived from another one."""
    return tuple(CanaryRow(shown=secrets.token_hex(_BYTES), hidden=secrets.token_hex(_BYTES)) for _ in range(ROWS))


def judge(rows: tuple[CanaryRow, ...], output: str) -> ProbeResult:
    """Return the verdict: every shown value must be in the output, and no part of a hidden value.

    An engine that shows nothing proves nothing. White space is ignored, because clients wrap long values.
    """
    text = "".join(output.split()).casefold()
    if not text:
        return ProbeResult(False, "The engine returned nothing, which does not show that it enforces restrictions.")
    if _contains_any(text, {part for row in rows for part in _fragments(row.hidden)}):
        return ProbeResult(False, "The output contains a value of the column that the user may not read.")
    absent = sum(not _contains(text, row.shown) for row in rows)
    if absent:
        return ProbeResult(
            False,
            f"The output lacks {absent} of {len(rows)} values that the user may read, so the engine did not read the "
            "table.",
        )
    return ProbeResult(True, "The engine showed every permitted value and no hidden one.")


def _fragments(value: str) -> list[str]:
    return [value[start : start + _FRAGMENT] for start in range(len(value) - _FRAGMENT + 1)]


def _contains_any(text: str, fragments: set[str]) -> bool:
    """Return True if one of the fragments is in the text. Every position is compared, whatever was found before."""
    found = False
    for start in range(len(text) - _FRAGMENT + 1):
        found |= text[start : start + _FRAGMENT] in fragments
    return found


def _contains(text: str, value: str) -> bool:
    """Return True if the value is in the text. The duration does not depend on how many characters agree."""
    wanted, found = value.encode(), False
    for start in range(len(text) - len(value) + 1):
        found |= compare_digest(text[start : start + len(value)].encode(), wanted)
    return found
