# SPDX-License-Identifier: Apache-2.0
"""Concurrent claims of overlapping locations: one of a hundred succeeds; the rest leaves no row and no file."""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.contract import conftest as shared
from tests.support.load.appends import client
from tests.support.stack.views import body as view_body
from tests.support.stack.world import SCHEMA, World, error_of, unique

# These are the stack and users of the contract tests: no test here damages them.
stack, world, ns, people = shared.stack, shared.world, shared.ns, shared.people

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

SendRequest = Callable[[httpx.Client], httpx.Response]

_TABLE_CREATION = [
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}, "last-column-id": 2},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
]


@pytest.fixture(scope="module")
def adopters(world: World) -> None:
    """Grant both callers the right to adopt a file that no table owns."""
    world.grant("manage_storage", world.bob, "warehouse", world.warehouse)


def _race(world: World, asks: list[SendRequest]) -> list[httpx.Response]:
    """Send all requests in random order, sixteen at a time, as two users."""
    clients = [client(world.base, person.token) for person in (world.admin, world.bob) for _ in range(8)]
    random.shuffle(asks)

    def send(number: int) -> httpx.Response:
        return asks[number](clients[number % len(clients)])

    with ThreadPoolExecutor(len(clients)) as pool:
        return list(pool.map(send, range(len(asks))))


def _creations(world: World, ns: str, location: str) -> list[SendRequest]:
    """Return a request for each way to claim a location: table, staged table, created by a commit,
    transaction, view.
    """
    root, at = world.root, f"{world.root}/namespaces/{ns}"
    table = {"schema": SCHEMA, "location": location}
    commit = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": str(uuid.uuid4())},
            *_TABLE_CREATION,
            {"action": "set-location", "location": location},
        ],
    }
    change = {"identifier": {"namespace": [ns], "name": unique("many")}, **commit}
    return [
        lambda http: http.post(f"{at}/tables", json={"name": unique("t"), **table}),
        lambda http: http.post(f"{at}/tables", json={"name": unique("s"), **table, "stage-create": True}),
        lambda http: http.post(f"{at}/tables/{unique('c')}", json=commit),
        lambda http: http.post(f"{root}/transactions/commit", json={"table-changes": [change]}),
        lambda http: http.post(f"{at}/views", json=view_body(unique("v"), location=location)),
    ]


def _document(location: str) -> bytes:
    """Return the metadata file of a table from another catalog."""
    metadata = {
        "format-version": 2,
        "table-uuid": str(uuid.uuid4()),
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 2,
        "schemas": [{**SCHEMA, "schema-id": 0}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
    }
    return json.dumps(metadata).encode()


def _won(answers: list[httpx.Response]) -> int:
    """Return the number of successful claims; check that each other claim was refused with a matching error."""
    lost = [answer for answer in answers if answer.status_code not in (200, 204)]
    for answer in lost:
        # 400: the winner's file exists already; 409: its row exists; 429: the machine is busy, and nothing was changed.
        assert answer.status_code in (400, 409, 429), answer.text
        if answer.status_code != 429:
            assert error_of(answer)["type"] in ("LocationAlreadyTaken", "UnexpectedFilesInLocation"), answer.text
    return len(answers) - len(lost)


def _rows(world: World, base: str) -> list[Any]:
    """Return the rows with a location below `base`, regardless of letter case."""
    return world.sql("select * from tables where lower(location) like lower($1) || '%'", base)


def _stored(world: World, base: str) -> set[str]:
    bucket = f"s3://{world.bucket}/"
    key = base.removeprefix(bucket).lower()
    return {bucket + found for found, _ in world.objects("demo/") if found.lower().startswith(key)}


@pytest.mark.parametrize("round", range(3))
def test_one_of_100_racing_claims_of_overlapping_locations_succeeds(world: World, ns: str, round: int) -> None:
    base = f"s3://{world.bucket}/demo/{unique('places')}"
    locations = [base, f"{base}/a", f"{base}/A", f"{base}/a/b", base.replace("/places", "/PLACES")]
    asks = [send for _ in range(4) for location in locations for send in _creations(world, ns, location)]
    assert len(asks) == 100
    answers = _race(world, asks)
    print(Counter(answer.status_code for answer in answers))
    assert _won(answers) == 1
    [row] = _rows(world, base)
    assert _stored(world, base) == ({row["metadata_location"]} if row["metadata_location"] else set())
    assert world.sql("select 1 from pending_files where lower(location) like lower($1) || '%'", base) == []
    granted = world.sql("select distinct object_id from grants where object_id = $1", str(row["id"]))
    assert len(granted) == (0 if row["staged_by"] else 1)


@pytest.mark.parametrize("round", range(2))
def test_racing_registration_and_creation_at_one_location_give_one_winner(
    world: World, adopters: None, ns: str, round: int
) -> None:
    base = f"s3://{world.bucket}/demo/{unique('brought')}"
    file = f"{base}/metadata/00000-{uuid.uuid4()}.metadata.json"
    world.s3.put_object(Bucket=world.bucket, Key=file.removeprefix(f"s3://{world.bucket}/"), Body=_document(base))

    def register(http: httpx.Client) -> httpx.Response:
        body = {"name": unique("r"), "metadata-location": file}
        return http.post(f"{world.root}/namespaces/{ns}/register", json=body, headers={"X-Lakegate-Adopt": "true"})

    inside = [send for _ in range(4) for send in _creations(world, ns, f"{base}/inside")]
    inside += [send for _ in range(4) for send in _creations(world, ns, f"{base}/INSIDE/deeper")]
    asks: list[SendRequest] = [*inside, *[register] * 60]
    assert len(asks) == 100
    answers = _race(world, asks)
    print(Counter(answer.status_code for answer in answers))
    assert _won(answers) == 1
    [row] = _rows(world, base)
    assert _stored(world, base) == {file} | ({row["metadata_location"]} if row["metadata_location"] else set())


def test_one_of_many_warehouses_with_overlapping_bases_is_created(world: World) -> None:
    """Warehouses with overlapping locations would have overlapping tables, so the second warehouse is refused."""
    project = world.admin.post("/management/v1/project", {"project-name": unique("other")}).json()["project-id"]
    prefix = unique("bases")
    prefixes = [prefix, f"{prefix}/a", prefix.upper(), f"{prefix}/a/b"]
    credential = {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": world.ready.s3.access_key,
        "secret-access-key": world.ready.s3.secret_key,
    }

    def create(http: httpx.Client, number: int) -> httpx.Response:
        body = {
            "warehouse-name": unique("w"),
            "project-id": (world.project, project)[number % 2],
            "storage-profile": {
                **world.ready.s3.profile,
                "bucket": world.bucket,
                "key-prefix": prefixes[number % len(prefixes)],
            },
            "storage-credential": credential,
        }
        return http.post("/management/v1/warehouse", json=body)

    clients = [client(world.base, world.admin.token) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: create(clients[number % 8], number), range(16)))
    codes = Counter(answer.status_code for answer in answers)
    assert codes.pop(201) == 1, codes
    # 503: the machine is too busy to decide.
    lost = [each for each in answers if each.status_code not in (201, 503)]
    assert {error_of(each)["type"] for each in lost} == {"CreateWarehouseStorageProfileOverlap"}
    rows = world.sql(
        "select 1 from warehouses where lower(convert_from(profile, 'UTF8')) like $1", f"%{prefix.lower()}%"
    )
    assert len(rows) == 1
