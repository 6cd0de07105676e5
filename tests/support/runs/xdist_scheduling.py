# SPDX-License-Identifier: Apache-2.0
"""Distribute test files over the processes of pytest-xdist (`pytest -n 4`, which `make test` does).

A group is the unit that one process runs: a single file, or the files that share the stack of
`tests/integration/conftest.py`. An idle process takes the next group; long ones begin first. Files with limits of
fractions of seconds run last, in one process with no other test beside it. Only the duration of a run depends on
groups: a file may run in any process, and alone.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


def _integration(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/integration/test_{name}.py" for name in names)


def _e2e(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/e2e/test_{name}.py" for name in names)


#: The first files of each shared group, in the order in which groups are taken: those that use the stack of
#: `tests/integration/conftest.py`, some of which compare all of it; those that start further gateways on such a stack,
#: in a process of their own; those that start a gateway with settings of their own on the stack of `stopped_gateway`;
#: those that kill the `restarted_gateway`; the demonstration, the longest; those with a Spark in the process of the
#: test, on a stack or without one; those with the Spark process of `tests/e2e/conftest.py`; and the other engine tests.
#: The files of a group run in this order: what compares all tuples, while there are few.
_SHARED = {
    "integration": _integration(
        "reconcile",
        "drift",
        "delivery_refusals",
        "grant_rows",
        "grants_rules",
        "last_admin_guard",
        "cli",
        "pending_creations",
        "bounded_cost",
        "rolling_upgrade",
        "encryption_keys",
        "stored_secrets",
        "embedded_up",
        "trino_cost",
    ),
    "integration, gateways": _integration(
        "scope_canary",
        "vault",
        "provided_storage",
        "additional_authorizers",
        "golden_matrix_over_rows",
        "verifier_health",
    ),
    "settings": _integration(
        "policy_bundle_endpoint",
        "event_delivery",
        "every_verified_operation",
        "change_approval",
        "change_events",
        "configured_verifiers",
        "required_probes",
        "labels",
        "bound_tokens",
        "refused_logins",
        "tag_suggestions",
    ),
    "killed": _integration("killed_gateways", "killed_lifecycles", "large_namespace_drops"),
    "demo": _e2e("demo_real_data"),
    "governed": _e2e("governed_copy_kills", "governed_copy_access", "spark_governed", "one_policy_every_engine"),
    "pipeline": _e2e("pipeline_run", "pipeline_transformations", "policy_agreement", "spark_agreement", "spark_masks"),
    "spark": (
        "tests/e2e/engines/test_spark41.py",
        *_e2e(
            "client_credentials",
            "credential_refresh",
            "denial_walk",
            "engine_interoperability",
            "remote_signing",
            "spark_catalog",
            "spark_history",
            "spark_maintenance",
            "spark_renames",
            "spark_rows",
            "spark_versions",
            "spark_views",
            "table_defaults",
            "trino_agreement",
        ),
    ),
    "engines": ("tests/e2e/",),
}

#: Files for which one process needs minutes, taken next, so that none of them is left for the end. The others run as
#: they were collected.
_LONG = (
    "tests/access/test_lock_6_matrix.py",
    "tests/policies/test_residual.py",
    "tests/policies/test_model.py",
    "tests/integration/test_dependency_outages.py",
)

#: The group of tests that measure fractions of seconds, taken when no other group is left.
QUIET = "quiet"

_QUIET = (
    "tests/security/test_cached_grant_expiry.py",
    "tests/security/test_pending_revocation.py",
    "tests/security/test_revocation.py",
    "tests/security/test_slow_clients.py",
    *_integration("opa_outages", "openfga_outages", "purge_scope"),
    "tests/unit/audit/test_sink.py",
    "tests/unit/telemetry/test_health.py",
)


def group_of(nodeid: str) -> str:
    """Return the group of a test: the quiet one, one of the shared ones, or its file."""
    file = nodeid.partition("::")[0]
    if file in _QUIET:
        return QUIET
    if file in _LONG:
        return file
    return next((name for name, begins in _SHARED.items() if file.startswith(begins)), file)


def position_of(nodeid: str) -> tuple[int, int]:
    """Return the position of a test's group and of its file in it, lowest first."""
    order = [*_SHARED, *_LONG]
    name = group_of(nodeid)
    if name == QUIET:
        return len(order) + 1, 0
    if name not in order:
        return len(order), 0
    within = [number for number, begins in enumerate(_SHARED.get(name, ())) if nodeid.startswith(begins)]
    return order.index(name), within[0] if within else 0


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Assign groups in collection order, the quiet one to the last remaining process."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        """End a process, and with it its stacks, that could only take the quiet group while another process still
        works.
        """
        others = any(other is not node and not other.shutting_down for other in self.nodes)
        if others and list(self.workqueue) == [QUIET]:
            # Up to two tests remain for it, as if it would get more; it ends after them.
            if self._pending_of(self.assigned_work[node]) <= 2 and not node.shutting_down:
                node.shutdown()
            return
        super()._reschedule(node)
