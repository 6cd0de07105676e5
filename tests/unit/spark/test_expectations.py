# SPDX-License-Identifier: Apache-2.0
"""Results of expectations: passed, warned and failed."""

from __future__ import annotations

import pytest

from lakegate.spark import expectations
from lakegate.spark.expectations import Expectation, NotEmpty, Outcome, Rule, Severity, failures, judge

WARN, FAIL = Severity.WARN, Severity.FAIL


def rule(severity: Severity, share: float = 0.0) -> Expectation:
    return Expectation(name="r", description="d", severity=severity, violated_by="x", tolerated_share=share)


@pytest.mark.parametrize(
    ("severity", "share", "violations", "outcome"),
    [
        (FAIL, 0.0, 0, Outcome.PASSED),
        (FAIL, 0.0, 1, Outcome.FAILED),
        (WARN, 0.0, 1, Outcome.WARNED),
        (FAIL, 0.1, 10, Outcome.PASSED),
        (FAIL, 0.1, 11, Outcome.FAILED),
        (WARN, 0.1, 11, Outcome.WARNED),
    ],
)
def test_an_expectation_fails_by_tolerated_share_and_then_severity(
    severity: Severity, share: float, violations: int, outcome: Outcome
) -> None:
    assert judge("d", rule(severity, share), 100, violations).outcome is outcome


def test_an_empty_dataset_violates_no_row_rule() -> None:
    assert judge("d", rule(FAIL), 0, 0).outcome is Outcome.PASSED


def test_an_empty_dataset_fails_where_rows_are_expected() -> None:
    expected = NotEmpty(name="n", description="d", severity=FAIL)
    assert judge("d", expected, 0, 1).outcome is Outcome.FAILED


def test_only_failed_expectations_stop_a_run() -> None:
    results = [judge("d", rule(severity), 100, count) for severity, count in ((WARN, 1), (FAIL, 1), (FAIL, 0))]
    assert failures(results) == [results[1]]


@pytest.mark.parametrize(
    "ruleset",
    [
        *(expectations.delivered(source) for source in ("airlines", "airports", "planes", "weather", "flights")),
        expectations.OF_WEATHER,
        expectations.OF_AIRCRAFT,
        expectations.OF_FLIGHTS,
        expectations.OF_ROUTE_PUNCTUALITY,
        expectations.OF_CARRIER_DELAYS,
        expectations.OF_UTILISATION,
    ],
)
def test_rule_names_are_unique_within_a_dataset(ruleset: tuple[Rule, ...]) -> None:
    names = [rule.name for rule in ruleset]
    assert len(set(names)) == len(names)
