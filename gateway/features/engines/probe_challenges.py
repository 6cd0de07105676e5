# SPDX-License-Identifier: Apache-2.0
"""Create the random values of an engine probe, and evaluate whether the engine's output shows any that it must hide.

Pure, apart from random numbers.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from hmac import compare_digest
from typing import Final
from uuid import UUID

import msgspec

from gateway.access.operations.engine_probes import CanaryRow

ROWS: Final = 5
KEPT: Final = 3
"""The number of rows that the row filter keeps. It removes the others."""
_BYTES: Final = 16
_FRAGMENT: Final = 10
"""An output with this many successive characters of a hidden value shows the value. Clients may cut or wrap values."""


class LastProbe(msgspec.Struct, frozen=True):
    """The part of a probe that stays stored after its end."""

    id: UUID


class Challenge(LastProbe, frozen=True, kw_only=True, rename="kebab"):
    """An open probe as it is stored. `table` is the name of its canary table."""

    table: str
    rows: tuple[CanaryRow, ...]
    created_by: str
    expires_at: datetime


class ProbeResult(msgspec.Struct, frozen=True):
    """The verdict on an engine's output, and its reason. The reason contains no value of the canary table."""

    passed: bool
    reason: str


def new_rows() -> tuple[CanaryRow, ...]:
    """Return the rows of a canary table. All values are random and independent of each other."""
    return tuple(_row(kept=number < KEPT) for number in range(ROWS))


def masked_as(value: str) -> str:
    """Return the text that an engine must show for `value` in the column `masked` (action `show-last-4`)."""
    return "".join("n" if char.isdigit() else "x" for char in value[:-4]) + value[-4:]


def judge(rows: tuple[CanaryRow, ...], output: str) -> ProbeResult:
    """Return the verdict on `output`. It must contain all permitted values, and no part of a hidden value.

    An empty output fails: it does not show that the engine enforces restrictions. White space is ignored, because
    clients wrap long values.
    """
    text = "".join(output.split()).casefold()
    if not text:
        return ProbeResult(False, "The engine returned nothing, which does not show that it enforces restrictions.")
    kept, removed = [row for row in rows if row.kept], [row for row in rows if not row.kept]
    if _shows_any(text, [row.hidden for row in rows]):
        return ProbeResult(False, "The output contains a value of the column that the user may not read.")
    if _shows_any(text, [row.masked for row in rows]):
        return ProbeResult(False, "The output contains an unmasked value of the masked column.")
    masks = [_contains(text, masked_as(row.masked)) for row in removed]
    if _shows_any(text, [row.shown for row in removed]) or any(masks):
        return ProbeResult(False, "The output contains a value of a row that the row filter removes.")
    absent = sum(not _contains(text, row.shown) for row in kept)
    if absent:
        return ProbeResult(
            False,
            f"The output lacks {absent} of {len(kept)} values that the user may read, so the engine did not read the "
            "table.",
        )
    unmasked = sum(not _contains(text, masked_as(row.masked)) for row in kept)
    if unmasked:
        return ProbeResult(
            False, f"The output lacks {unmasked} of {len(kept)} masked values, so the engine did not apply the mask."
        )
    return ProbeResult(True, "The engine showed every permitted value and masked value, and no other one.")


def judge_read(rows: tuple[CanaryRow, ...], outputs: Sequence[str], controls: Sequence[str]) -> ProbeResult:
    """Return the verdict on the outputs for the test user, and on those for the control user, who may read the whole
    table.

    The creator of the canary table could have written only values that the test user may see. Then an engine that
    enforces nothing would pass. So the control user must see all original values in the same table.
    """
    for output in outputs:
        result = judge(rows, output)
        if not result.passed:
            return result
    values = [value.casefold() for row in rows for value in (row.shown, row.masked, row.hidden)]
    for control in controls:
        text = "".join(control.split()).casefold()
        absent = sum(not _contains(text, value) for value in values)
        if absent:
            return ProbeResult(
                False,
                f"The engine showed the control user {len(values) - absent} of {len(values)} values of the canary. The "
                "table must have all of them: otherwise it is not known what the engine would hide.",
            )
    return ProbeResult(True, "The engine showed both users exactly what they may read.")


def _row(*, kept: bool) -> CanaryRow:
    shown, masked, hidden = (secrets.token_hex(_BYTES) for _ in range(3))
    return CanaryRow(shown=shown, masked=masked, hidden=hidden, kept=kept)


def _shows_any(text: str, values: list[str]) -> bool:
    """Return True if the text contains a long enough part of one of the values."""
    return _contains_any(text, {part for value in values for part in _fragments(value)})


def _fragments(value: str) -> list[str]:
    return [value[start : start + _FRAGMENT] for start in range(len(value) - _FRAGMENT + 1)]


def _contains_any(text: str, fragments: set[str]) -> bool:
    """Return True if the text contains one of the fragments. All positions are compared, even after a hit (constant
    time).
    """
    found = False
    for start in range(len(text) - _FRAGMENT + 1):
        found |= text[start : start + _FRAGMENT] in fragments
    return found


def _contains(text: str, value: str) -> bool:
    """Return True if the text contains the value. The duration does not depend on the number of equal characters."""
    wanted, found = value.encode(), False
    for start in range(len(text) - len(value) + 1):
        found |= compare_digest(text[start : start + len(value)].encode(), wanted)
    return found
