# SPDX-License-Identifier: Apache-2.0
"""No sequence of requests gives a caller a key for a location that the caller did not obtain by creating an object."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.stack.world import SCHEMA, Person, World, error_triple, unique

#: Locations of one example: each is inside the one before, except for the last. The first holds an ownerless file.
PLACES = ("", "/x", "/x/y", "/z")

Step = tuple[str, int, int]

STEP = st.tuples(
    st.sampled_from(
        ["create", "generic", "view", "put", "put", "put", "unregister", "drop", "register", "register"]
        + ["overwrite", "register view", "rename", "wait"]
    ),
    st.integers(0, 3),
    st.integers(0, 3),
)

ANCESTOR: list[Step] = [("create", 1, 0), ("put", 0, 0)]


@dataclass
class Attack:
    """A caller with `create` on a namespace, and all locations that the caller has obtained so far."""

    world: World
    by: Person
    namespace: str
    raw: str
    document: dict[str, Any]
    vended: list[str] = field(default_factory=list)
    names: list[tuple[str, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    configs: list[dict[str, str]] = field(default_factory=list)

    def do(self, step: Step) -> None:
        """Send the request of one step and check the locations and keys of its response."""
        kind, first, second = step
        space = f"{self.world.root}/namespaces/{self.namespace}"
        match kind:
            case "create" | "view" | "generic":
                self._create(kind, self.raw + PLACES[first])
            case "put" if self.vended:
                self._put(self.vended[first % len(self.vended)], self.raw + PLACES[second])
            case "unregister" if self.names:
                at, name = self.names[first % len(self.names)]
                self._check(self.by.post(f"{space}/{at}/{name}/unregister"))
            case "drop" if self.names:
                at, name = self.names[first % len(self.names)]
                root = space if at != "generic-tables" else space.replace("/catalog/", "/lakekeeper/")
                self._check(self.by.delete(f"{root}/{at}/{name}?purgeRequested=false"))
            case "rename" if self.names:
                at, name = self.names[first % len(self.names)]
                to = unique("renamed")
                body = {
                    "source": {"namespace": [self.namespace], "name": name},
                    "destination": {"namespace": [self.namespace], "name": to},
                }
                self.by.post(f"{self.world.root}/{at}/rename", body)
                self.names.append((at, to))
            case "register" | "overwrite" | "register view" if self.files:
                self._register(kind, self.files[-1 - first % len(self.files)], second)
            case "wait":
                self.world.sql(
                    "update retired_locations set keys_until = clock_timestamp() where location like $1", self.raw + "%"
                )
            case _:
                pass

    def _create(self, kind: str, location: str) -> None:
        space, name = f"{self.world.root}/namespaces/{self.namespace}", unique("t")
        match kind:
            case "create":
                at, body = "tables", {"name": name, "schema": SCHEMA, "location": location}
            case "generic":
                space = space.replace("/catalog/", "/lakekeeper/")
                at, body = "generic-tables", {"name": name, "format": "csv", "base-location": location}
            case _:
                version = {
                    "version-id": 1,
                    "timestamp-ms": 1,
                    "schema-id": 0,
                    "summary": {},
                    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
                    "default-namespace": [self.namespace],
                }
                at = "views"
                body = {
                    "name": name, "schema": SCHEMA, "location": location, "view-version": version, "properties": {}
                }  # fmt: skip
        answer = self.by.post(f"{space}/{at}", body)
        if answer.status_code == 200:
            # An empty location that no table used before.
            self.vended.append(location)
            self.names.append((at, name))
            if "metadata-location" in answer.json():
                self.files.append(answer.json()["metadata-location"])
        self._check(answer)

    def _put(self, into: str, inner: str) -> None:
        file = f"{into}/metadata/{len(self.files):05d}-{unique('f')}.metadata.json"
        key = file.removeprefix(f"s3://{self.world.bucket}/")
        document = json.dumps({**self.document, "location": inner})
        self.world.s3.put_object(Bucket=self.world.bucket, Key=key, Body=document.encode())
        self.files.append(file)

    def _register(self, kind: str, file: str, which: int) -> None:
        space, name = f"{self.world.root}/namespaces/{self.namespace}", unique("t")
        if kind == "overwrite" and self.names:
            name = self.names[which % len(self.names)][1]
        body = {"name": name, "metadata-location": file}
        if kind == "register view":
            answer = self.by.post(f"{space}/register-view", body)
        else:
            answer = self.by.post(f"{space}/register", {**body, "overwrite": kind == "overwrite"})
        if answer.status_code == 200:
            self.names.append(("views" if kind == "register view" else "tables", name))
        self._check(answer)

    def _check(self, answer: httpx.Response) -> None:
        assert answer.status_code < 500, answer.text
        if answer.status_code != 200:
            return
        body = answer.json()
        for credential in body.get("storage-credentials") or ():
            assert credential["prefix"].rstrip("/") in self.vended, (credential["prefix"], self.vended)
            self.configs.append(credential["config"])
        if "metadata" in body:
            assert body["metadata"]["location"] in self.vended, self.vended

    def finish(self, secret: str) -> None:
        """Check all tables that the caller can load now, and that no obtained key reads the ownerless file."""
        for at, name in self.names:
            if at == "tables":
                self._check(self.by.get(f"{self.world.root}/namespaces/{self.namespace}/tables/{name}"))
        for row in self.world.sql("select location from tables where location like $1", self.raw + "%"):
            assert row["location"] in self.vended
        for config in self.configs[-3:]:
            with pytest.raises(ClientError):
                self.world.store_of(config).get_object(Bucket=self.world.bucket, Key=secret)


@pytest.fixture(scope="module")
def ground(world: World) -> tuple[Person, str, dict[str, Any]]:
    """Return (caller, namespace with `create` for the caller, valid metadata)."""
    by, namespace = world.stranger("attacker"), world.namespace()
    world.grant("create", by, "namespace", world.namespace_id(namespace))
    document: dict[str, Any] = world.table(namespace, by=by).answer["metadata"]
    return by, namespace, document


@pytest.mark.generated
@pytest.mark.threat("LG-LOC-23")
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, min_size=4, max_size=10))
@example(steps=[*ANCESTOR, ("unregister", 0, 0), ("register", 0, 0)])
@example(steps=[*ANCESTOR, ("drop", 0, 0), ("wait", 0, 0), ("register", 0, 0)])
@example(steps=[*ANCESTOR, ("overwrite", 0, 0)])
@example(steps=[("generic", 1, 0), ("put", 0, 0), ("drop", 0, 0), ("register", 0, 0)])
@example(steps=[("view", 1, 0), ("put", 0, 0), ("drop", 0, 0), ("wait", 0, 0), ("register", 0, 0)])
@example(steps=[("create", 2, 0), ("put", 0, 1), ("rename", 0, 0), ("unregister", 1, 0), ("register", 0, 0)])
@example(steps=[("create", 2, 0), ("unregister", 0, 0), ("wait", 0, 0), ("put", 0, 1), ("register view", 0, 0)])
def test_no_request_sequence_reaches_a_key_outside_granted_locations(
    world: World, ground: tuple[Person, str, dict[str, Any]], steps: list[Step]
) -> None:
    by, namespace, document = ground
    raw = f"s3://{world.bucket}/demo/{unique('handed')}"
    secret = f"{raw}/orphan/secret.json".removeprefix(f"s3://{world.bucket}/")
    world.s3.put_object(Bucket=world.bucket, Key=secret, Body=b"{}")
    attack = Attack(world, by, namespace, raw, document)
    for step in steps:
        attack.do(step)
    attack.finish(secret)


@pytest.mark.threat("LG-LOC-23")
@pytest.mark.parametrize("how", ["commit", "transaction"])
def test_staged_location_is_not_replaced_by_one_differing_in_case(
    world: World, ground: tuple[Person, str, dict[str, Any]], how: str
) -> None:
    """The gateway writes the first metadata file with the warehouse credential: only into the staged location."""
    by, namespace, _ = ground
    raw, name = f"s3://{world.bucket}/demo/{unique('staged')}", unique("t")
    space = f"{world.root}/namespaces/{namespace}/tables"
    body = {"name": name, "schema": SCHEMA, "location": f"{raw}/X", "stage-create": True}
    staged = by.post(space, body)
    assert staged.status_code == 200, staged.text
    strange = f"{raw}/x/part.json".removeprefix(f"s3://{world.bucket}/")
    world.s3.put_object(Bucket=world.bucket, Key=strange, Body=b"{}")

    def finish(location: str) -> httpx.Response:
        updates = [
            {"action": "assign-uuid", "uuid": staged.json()["metadata"]["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": location},
        ]
        commit = {"requirements": [{"type": "assert-create"}], "updates": updates}
        if how == "commit":
            return by.post(f"{space}/{name}", commit)
        change = {"identifier": {"namespace": [namespace], "name": name}, **commit}
        return by.post(f"{world.root}/transactions/commit", {"table-changes": [change]})

    assert error_triple(finish(f"{raw}/x"))[:2] == (409, "LocationAlreadyTaken")
    keys = [found for found, _ in world.objects(f"{raw}/x/".removeprefix(f"s3://{world.bucket}/"))]
    assert keys == [strange]
    assert finish(f"{raw}/X").status_code in (200, 204)
