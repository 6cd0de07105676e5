# SPDX-License-Identifier: Apache-2.0
"""The comparison of measured costs with their record."""

from __future__ import annotations

import msgspec

from tests.bench import catalogs
from tests.bench.growth import RECORD, grown


def test_cost_above_a_quarter_more_than_its_record_is_reported() -> None:
    assert grown({"config": 2.4, "load": 1.0}, {"config": 2.0, "load": 1.0}) == []
    assert grown({"config": 2.6, "load": 1.0}, {"config": 2.0, "load": 1.0}) == [
        "config: 2.60 floors, 1.30 times the record"
    ]


def test_request_without_a_record_is_reported() -> None:
    assert grown({"new": 1.0}, {}) == ["new: 1.00 floors, without a record; write one with --write"]


def test_every_measured_request_has_a_record() -> None:
    assert msgspec.json.decode(RECORD.read_bytes(), type=dict[str, float]).keys() == set(catalogs.NAMES)
