# SPDX-License-Identifier: Apache-2.0
"""Compare the time of checks with two relationship models on an OpenFGA with its tuples in memory.

    git show COMMIT:gateway/fga/model.json > former.json
    python -m tests.bench.model_versions former.json

The table is five namespaces deep. The caller is a member of a role through ten nested roles. The models take turns, and
the medians of all rounds are printed, in milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from gateway.fga.client import FgaClient
from gateway.fga.compiled import compiled_model
from gateway.fga.model import push_model
from gateway.fga.wire import FgaTuple
from tests.support.servers.openfga_server import KEY, openfga_in_memory

_ROUNDS: Final = 12
_CONTEXT: Final = {"current_time": "2026-03-04T12:00:00Z"}
_TABLES: Final = 50


def _tuples(roles_from: str, privilege: str) -> list[FgaTuple]:
    """Return the hierarchy, and a grant on `roles_from` to a role that the caller is a member of through ten others."""
    up = ["server:s", "project:p", "warehouse:w", *(f"namespace:n{level}" for level in range(5))]
    edges = ["server", "project", *["parent"] * 5]
    found = [FgaTuple(above, edge, below) for above, below, edge in zip(up, up[1:], edges, strict=False)]
    found += [FgaTuple(up[-1], "parent", f"table:t{number}") for number in range(_TABLES)]
    found += [FgaTuple("user:member", "assignee", "role:r0")]
    found += [FgaTuple(f"role:r{n}#assignee", "assignee", f"role:r{n + 1}") for n in range(10)]
    return [*found, FgaTuple("role:r10#assignee", privilege, roles_from)]


async def _time(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


def _cases(client: FgaClient) -> Mapping[str, Callable[[], Awaitable[object]]]:
    def check(user: str, relation: str) -> Callable[[], Awaitable[object]]:
        return lambda: client.batch_check([FgaTuple(user, relation, "table:t0")], context=_CONTEXT)

    many = [FgaTuple("user:member", "can_get_metadata", f"table:t{n}") for n in range(_TABLES)]
    return {
        "allowed can_get_metadata by ten nested roles": check("user:member", "can_get_metadata"),
        "refused can_get_metadata": check("user:stranger", "can_get_metadata"),
        "refused can_grant_select": check("user:member", "can_grant_select"),
        "refused can_grant_enforcer": check("user:member", "can_grant_enforcer"),
        f"batch of {_TABLES} can_get_metadata": lambda: client.batch_check(many, context=_CONTEXT),
    }


async def _compare(endpoint: str, models: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    clients = {}
    for name, model in models.items():
        pushed = await push_model(endpoint, KEY, f"cost-{name}", compiled=model)
        clients[name] = FgaClient(endpoint, KEY, pushed.store_id, pushed.model_id, timeout_s=30)
        await clients[name].write(_tuples("warehouse:w", "describe"))
    times: dict[str, dict[str, list[float]]] = {}
    for number in range(_ROUNDS + 2):
        for name, client in clients.items():
            for case, work in _cases(client).items():
                took = await _time(work)
                if number >= 2:
                    times.setdefault(case, {}).setdefault(name, []).append(took)
    for client in clients.values():
        await client.aclose()
    return {case: {name: statistics.median(each) for name, each in by.items()} for case, by in times.items()}


def main(former: Path) -> None:
    """Print the medians of both models."""
    read = json.loads(former.read_text(encoding="utf-8"))
    read.pop("version", None)
    models = {"former": read, "now": compiled_model()}
    with openfga_in_memory() as endpoint:
        for case, by in asyncio.run(_compare(endpoint, models)).items():
            print(f"{case}: former {by['former']:.1f} ms, now {by['now']:.1f} ms")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
