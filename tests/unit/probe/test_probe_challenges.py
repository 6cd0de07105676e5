# SPDX-License-Identifier: Apache-2.0
"""Verdicts on what engines show of a canary."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gateway.access.operations.engine_probes import CanaryRow
from gateway.features.engines.probe_challenges import judge, masked_as, new_rows
from lakegate.reader.masks import show_last_4

ROWS = new_rows()
KEPT = [row for row in ROWS if row.kept]
REMOVED = [row for row in ROWS if not row.kept]
SHOWN = "\n".join(f"{row.shown}\n{masked_as(row.masked)}" for row in KEPT)


@pytest.mark.parametrize(
    "output",
    [
        SHOWN,
        SHOWN.upper(),
        "shown | hidden\n" + "\n".join(f'"{row.shown}" | "{masked_as(row.masked)}" | NULL' for row in KEPT),
        "\n".join(f"{line[:20]}\n{line[20:]}" for line in SHOWN.split("\n")),
        "\n".join(reversed(SHOWN.split("\n"))) + f"\n****{ROWS[0].hidden[-4:]}",
    ],
    ids=["plain", "upper case", "with a header", "wrapped", "reversed and masked"],
)
def test_every_permitted_value_and_no_hidden_one_passes(output: str) -> None:
    assert judge(ROWS, output).passed


@pytest.mark.parametrize(
    "more",
    [
        ROWS[0].hidden,
        ROWS[-1].hidden.upper(),
        ROWS[1].hidden[:12],
        ROWS[1].hidden[7:17],
        " ".join(ROWS[2].hidden),
        f"Cannot cast '{ROWS[0].hidden}' to integer",
    ],
    ids=["value", "upper case", "beginning", "middle", "spaced", "error message"],
)
def test_any_part_of_a_hidden_value_fails(more: str) -> None:
    result = judge(ROWS, f"{SHOWN}\n{more}")
    assert not result.passed
    assert "may not read" in result.reason


@pytest.mark.parametrize(
    "output",
    ["", " \n\t", "shown\n", SHOWN[33:], SHOWN[:-1], "\n".join(row.shown for row in KEPT)],
    ids=["empty", "white space", "header", "first value cut", "last value cut", "no masks"],
)
def test_output_without_every_permitted_value_proves_nothing(output: str) -> None:
    assert not judge(ROWS, output).passed


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (KEPT[0].masked, "unmasked"),
        (KEPT[2].masked[5:15], "unmasked"),
        (REMOVED[0].masked, "unmasked"),
        (REMOVED[0].shown, "row filter"),
        (REMOVED[-1].shown[-10:], "row filter"),
        (masked_as(REMOVED[0].masked), "row filter"),
        (REMOVED[0].hidden, "may not read"),
    ],
    ids=range(7),
)
def test_any_part_of_an_unmasked_value_or_of_a_removed_row_fails(more: str, reason: str) -> None:
    result = judge(ROWS, f"{more}\n{SHOWN}")
    assert not result.passed
    assert reason in result.reason


def test_mask_is_that_of_the_reader() -> None:
    values = pa.array([row.masked for row in ROWS])
    assert show_last_4(values).to_pylist() == [masked_as(row.masked) for row in ROWS]


def test_canary_has_rows_of_both_kinds() -> None:
    assert (len(KEPT), len(REMOVED)) == (3, 2)


def test_reason_contains_no_value_of_the_canary() -> None:
    reason = judge(ROWS, ROWS[0].hidden).reason
    assert not any(row.hidden in reason or row.shown in reason for row in ROWS)


def test_values_are_new_for_each_probe_and_unrelated() -> None:
    values = [value for row in (*new_rows(), *new_rows(), *ROWS) for value in (row.shown, row.masked, row.hidden)]
    assert len(set(values)) == len(values)
    assert all(len(value) == 32 for value in values)


def test_values_of_another_probe_do_not_pass() -> None:
    other: tuple[CanaryRow, ...] = new_rows()
    assert not judge(other, SHOWN).passed
