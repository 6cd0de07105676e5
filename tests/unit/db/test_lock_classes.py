# SPDX-License-Identifier: Apache-2.0
"""Advisory locks of different purposes never have the same keys."""

from __future__ import annotations

from gateway.db import advisory_locks, audit_blocks, audit_partitions, event_deliveries


def test_each_purpose_has_a_class_of_its_own() -> None:
    """With a common class, the hash of a sink's name could be the number of another lock."""
    modules = (advisory_locks, audit_blocks, audit_partitions, event_deliveries)
    assert len({vars(module)["_CLASS"] for module in modules}) == len(modules)
