# SPDX-License-Identifier: Apache-2.0
"""Verdicts on what engines show of a canary."""

from __future__ import annotations

import pytest

from gateway.governance.probe_challenges import judge, new_rows
from gateway.protocol.engine_probes import CanaryRow

ROWS = new_rows()
SHOWN = "\n".join(row.shown for row in ROWS)


@pytest.mark.parametrize(
    "output",
    [
        SHOWN,
        SHOWN.upper(),
        "shown | hidden\n" + "\n".join(f'"{row.shown}" | NULL' for row in ROWS),
        "\n".join(f"{row.shown[:20]}\n{row.shown[20:]}" for row in ROWS),
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
    "output", ["", " \n\t", "shown\n", "\n".join(row.shown for row in ROWS[1:]), SHOWN[:-1]], ids=range(5)
)
def test_output_without_every_permitted_value_proves_nothing(output: str) -> None:
    assert not judge(ROWS, output).passed


def test_reason_contains_no_value_of_the_canary() -> None:
    reason = judge(ROWS, ROWS[0].hidden).reason
    assert not any(row.hidden in reason or row.shown in reason for row in ROWS)


def test_values_are_new_for_each_probe_and_unrelated() -> None:
    values = [value for row in (*new_rows(), *new_rows(), *ROWS) for value in (row.shown, row.hidden)]
    assert len(set(values)) == len(values)
    assert all(len(value) == 32 for value in values)


def test_values_of_another_probe_do_not_pass() -> None:
    other: tuple[CanaryRow, ...] = new_rows()
    assert not judge(other, SHOWN).passed
