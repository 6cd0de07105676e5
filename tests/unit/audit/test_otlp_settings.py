# SPDX-License-Identifier: Apache-2.0
"""The settings of the export of audit records, and the wait that a collector asks for."""

from __future__ import annotations

import pytest

from gateway.settings import load
from gateway.settings.env import PREFIX
from gateway.telemetry.otlp_client import _seconds


def _problems(**settings: str) -> list[str]:
    return load({f"{PREFIX}AUDIT__{name}": value for name, value in settings.items()}).audit.problems()


def test_an_export_without_sealing_is_refused() -> None:
    (problem,) = _problems(OTLP__ENDPOINT="https://collector.example:4318")
    assert "AUDIT__OTLP__ENDPOINT needs" in problem
    assert _problems(OTLP__ENDPOINT="https://collector.example:4318", SEAL_INTERVAL="10") == []
    assert _problems() == []


def test_an_address_without_http_is_refused() -> None:
    (problem,) = _problems(OTLP__ENDPOINT="collector.example:4318", SEAL_INTERVAL="10")
    assert "must begin with https://" in problem


@pytest.mark.parametrize(
    ("address", "accepted"),
    [("http://collector:4318", False), ("https://collector:4318", True), ("http://127.0.0.1:4318", True)],
)
def test_a_token_is_not_sent_in_clear_over_a_network(address: str, accepted: bool) -> None:
    problems = _problems(OTLP__ENDPOINT=address, OTLP__TOKEN="secret", SEAL_INTERVAL="10")
    assert (problems == []) is accepted
    assert "secret" not in str(problems)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("2", 2.0),
        ("100000", 300.0),
        ("-1", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("9" * 99, None),
    ],
)
def test_a_retry_time_is_read_and_limited(header: str | None, seconds: float | None) -> None:
    assert _seconds(header) == seconds
