# SPDX-License-Identifier: Apache-2.0
"""Which tests stay together when several processes run them (`pytest -n 2`, which `make test` does).

A lane is what one process runs from its first test to its last: the files that share a stack, so that it is started
once, and every other file by itself. A process that is done takes the next lane; what takes longest begins first.
Files whose bounds are fractions of seconds come last, in one process with none beside it. Nothing but time depends on
lanes: a file may run in any process, and alone.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


def _integration(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/integration/test_{name}.py" for name in names)


#: The beginnings of the files in each shared lane, in the order in which lanes are taken: those that
#: use the stack of `tests/integration/conftest.py`, some of which compare all of it, and those with the Spark of
#: `tests/e2e/conftest.py`. The files of a lane run in this order: what compares all tuples, while there are few.
_SHARED = {
    "integration": _integration(
        "reconcile",
        "drift",
        "delivery_refusals",
        "grant_rows",
        "grants_rules",
        "server_offices",
        "cli",
        "bounded_cost",
        "side_by_side",
        "encryption_keys",
        "embedded_up",
    ),
    "engines": ("tests/e2e/",),
}

#: Files with a stack or a Spark of their own that take minutes, taken next; the others come as they were collected.
_LONG = tuple(f"tests/e2e/test_{name}.py" for name in ("demo_real_data", "pipeline_run", "pipeline_transformations"))

#: The lane of what is kept by the clock, taken when nothing else is left.
QUIET = "quiet"

_QUIET = (
    "tests/security/test_expiry_memory.py",
    "tests/security/test_revocation.py",
    "tests/security/test_slow_clients.py",
    *_integration("opa_outages", "openfga_outages", "outage_engines", "purge_scope"),
    "tests/unit/audit/test_sink.py",
    "tests/unit/telemetry/test_health.py",
)


def lane(nodeid: str) -> str:
    """The lane of a test: the quiet one, one of the shared ones, or its file."""
    file = nodeid.partition("::")[0]
    if file in _QUIET:
        return QUIET
    if file in _LONG:
        return file
    return next((name for name, begins in _SHARED.items() if file.startswith(begins)), file)


def turn(nodeid: str) -> tuple[int, int]:
    """Return when the lane of a test is taken and when its file runs in it, lowest first."""
    order = [*_SHARED, *_LONG]
    name = lane(nodeid)
    if name == QUIET:
        return len(order) + 1, 0
    if name not in order:
        return len(order), 0
    within = [number for number, begins in enumerate(_SHARED.get(name, ())) if nodeid.startswith(begins)]
    return order.index(name), within[0] if within else 0


class Lanes(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out lanes in the order in which their tests were collected, the quiet one to the last process there is."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return lane(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        """End a process, and with it its stacks, that could only take the quiet lane while another one still works."""
        others = any(other is not node and not other.shutting_down for other in self.nodes)
        if others and list(self.workqueue) == [QUIET]:
            # Up to two tests are left to it, as when it would be given more; it ends after them.
            if self._pending_of(self.assigned_work[node]) <= 2 and not node.shutting_down:
                node.shutdown()
            return
        super()._reschedule(node)
