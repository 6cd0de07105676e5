# SPDX-License-Identifier: Apache-2.0
"""Requests that must vend no credentials, and the proof that they changed nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from tests.support.stack import warehouses
from tests.support.stack.world import SCHEMA, Person, World, error_of, send_until_decided, unique

_VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}
# Names of properties that contain keys, for all stores.
_SECRET_NAMES = ("secret", "session-token", "oauth2.token", "sas-token", "access-key")


@dataclass(frozen=True)
class Target:
    """A warehouse of one kind of store with a table, and the users who try to get credentials."""

    root: str
    namespace: str
    table: str
    location: str
    released: str
    endpoint: str
    region: str
    people: dict[str, Person]

    @property
    def path(self) -> str:
        """Return the path of the table."""
        return f"{self.root}/namespaces/{self.namespace}/tables/{self.table}"

    @property
    def tables(self) -> str:
        """Return the path at which tables are created."""
        return f"{self.root}/namespaces/{self.namespace}/tables"


def load(by: Person, target: Target) -> httpx.Response:
    return by.get(target.path, headers=_VENDED)


def _credentials(by: Person, target: Target) -> httpx.Response:
    return by.get(f"{target.path}/credentials")


def _create(by: Person, target: Target) -> httpx.Response:
    return by.post(target.tables, {"name": unique("t"), "schema": SCHEMA}, headers=_VENDED)


def _stage(by: Person, target: Target) -> httpx.Response:
    return by.post(target.tables, {"name": unique("t"), "schema": SCHEMA, "stage-create": True}, headers=_VENDED)


def _register(by: Person, target: Target) -> httpx.Response:
    body = {"name": unique("t"), "metadata-location": target.released}
    return by.post(f"{target.root}/namespaces/{target.namespace}/register", body, headers=_VENDED)


def commit(by: Person, target: Target) -> httpx.Response:
    update = {"action": "set-properties", "updates": {"tried-by": by.name}}
    return by.post(target.path, {"requirements": [], "updates": [update]}, headers=_VENDED)


def sign(by: Person, target: Target) -> httpx.Response:
    """Ask for the signature of a write: readers may have reads signed."""
    uri = f"{target.endpoint}/{target.location.removeprefix('s3://')}/data/file.parquet"
    body = {"region": target.region, "method": "PUT", "uri": uri, "headers": {}}
    return by.post(f"{target.path}/sign", body)


ENTRY_POINTS: dict[str, Callable[[Person, Target], httpx.Response]] = {
    "load": load,
    "credentials": _credentials,
    "create": _create,
    "staged create": _stage,
    "register": _register,
    "commit": commit,
    "sign": sign,
}
_SEES, _HIDDEN = 403, 404
_ABSENT = {**dict.fromkeys(ENTRY_POINTS, _HIDDEN), "sign": 400}  # clients know this answer of a signer
#: Answers by principal and entry point. A reader sees the table; the namespace is visible to it, too.
REFUSED: dict[str, dict[str, int]] = {
    "describer": dict.fromkeys(("credentials", "create", "staged create", "register", "commit", "sign"), _SEES),
    "reader": dict.fromkeys(("create", "staged create", "register", "commit", "sign"), _SEES),
    "stranger": _ABSENT,
    "owner of another project": _ABSENT,
}


def _people(world: World, namespace_id: str) -> dict[str, Person]:
    people = {name: world.stranger(name.split()[0]) for name in REFUSED}
    world.grant("describe", people["describer"], "namespace", namespace_id)
    world.grant("select", people["reader"], "namespace", namespace_id)
    elsewhere = warehouses.project(world)
    world.grant("project_admin", people["owner of another project"], "project", elsewhere)
    return people


def made_target(world: World, root: str) -> Target:
    """Create a table and a released metadata file in a warehouse, and give the users their rights."""
    namespace, table, gone = unique("ns"), unique("t"), unique("t")
    space = f"{root}/namespaces/{namespace}"
    made = send_until_decided(lambda: world.admin.post(f"{root}/namespaces", {"namespace": [namespace]}))
    assert made.status_code == 200, made.text
    for body in ({"name": name, "schema": SCHEMA} for name in (table, gone)):
        made = send_until_decided(partial(world.admin.post, f"{space}/tables", body))
        assert made.status_code == 200, made.text
    kept, file = (world.admin.get(f"{space}/tables/{name}").json() for name in (table, gone))
    assert world.admin.post(f"{space}/tables/{gone}/unregister").status_code == 200
    return Target(
        root=root,
        namespace=namespace,
        table=table,
        location=kept["metadata"]["location"],
        released=file["metadata-location"],
        endpoint=world.ready.s3.endpoint,
        region=world.ready.s3.region,
        people=_people(world, world.admin.get(space).json()["properties"]["namespace_id"]),
    )


def sessions_so_far(world: World) -> float:
    """Return how many sessions the store was asked for so far, by the metrics of all workers."""
    text = httpx.get(world.ready.metrics_uri, trust_env=False, timeout=60).text
    counted = [line for line in text.splitlines() if line.startswith("lakegate_sts_duration_seconds_count")]
    return sum(float(line.rpartition(" ")[2]) for line in counted)


def property_keys(answer: Any) -> list[str]:
    """Return the names of the secret properties anywhere in an answer."""
    if isinstance(answer, dict):
        own = [name for name in answer if any(part in name for part in _SECRET_NAMES)]
        return own + [found for each in answer.values() for found in property_keys(each)]
    return [found for each in answer for found in property_keys(each)] if isinstance(answer, list) else []


def refuse_without_change(world: World, target: Target, name: str, entry: str) -> None:
    """Send a request that must be refused, and check its answer, its audit record and that nothing was changed."""
    before, sessions = world.snapshot(), sessions_so_far(world)
    answer = ENTRY_POINTS[entry](target.people[name], target)
    assert answer.status_code == REFUSED[name][entry], answer.text
    assert error_of(answer)["code"] == REFUSED[name][entry]
    assert world.snapshot() == before
    assert sessions_so_far(world) == sessions
    [record] = _records(world, answer)
    # A signature is decided together with credentials, which a reader may have.
    assert {each["outcome"] for each in record["decisions"]} & {"forbidden", "hidden"}, record


def _records(world: World, answer: httpx.Response) -> list[dict[str, Any]]:
    query = "select convert_from(record, 'UTF8') as record from audit_log where request_id = $1"
    id = answer.headers["x-request-id"]
    warehouses.until(lambda: bool(world.sql(query, id)))
    return [json.loads(row["record"]) for row in world.sql(query, id)]
