# SPDX-License-Identifier: Apache-2.0
"""Compressed responses, compressed request bodies, and members of later versions, against the running gateway."""

from __future__ import annotations

import gzip
import json
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.support.stack.world import Person, World, error_triple, unique

WIDE = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": i, "name": f"column_{i}", "type": "string", "required": False} for i in range(1, 80)],
}
_NO_KEYS = {"X-Iceberg-Access-Delegation": "client-managed"}


def _get(person: Person, path: str, **headers: str) -> httpx.Response:
    return person.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def _created(person: Person, path: str, content: bytes, **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return person.send("POST", path, content=content, headers={"Content-Type": "application/json", **sent})


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_large_document_is_compressed_and_equal(world: World, ns: str, coding: str) -> None:
    table = world.table(ns, schema=WIDE)
    plain = world.alice.get(table.path, headers={**_NO_KEYS, "Accept-Encoding": "identity"})
    packed = world.alice.get(table.path, headers={**_NO_KEYS, "Accept-Encoding": coding})
    assert packed.headers["content-encoding"] == coding
    assert packed.json() == plain.json()
    assert packed.num_bytes_downloaded < plain.num_bytes_downloaded / 4
    assert "Accept-Encoding" in packed.headers["vary"]
    assert "Accept-Encoding" in plain.headers["vary"]
    again = world.alice.get(
        table.path, headers={**_NO_KEYS, "Accept-Encoding": coding, "If-None-Match": packed.headers["etag"]}
    )
    assert (again.status_code, again.content, again.headers.get("content-encoding")) == (304, b"", None)
    head = world.alice.head(table.path, headers={"Accept-Encoding": coding})
    assert (head.status_code, head.content, head.headers.get("content-encoding")) == (204, b"", None)


@pytest.mark.threat("LG-DIS-22")
def test_answers_with_credentials_or_signatures_are_not_compressed(world: World, ns: str) -> None:
    table = world.table(ns, schema=WIDE)
    loaded = _get(world.alice, table.path, Accept_Encoding="gzip, zstd")
    assert loaded.json()["storage-credentials"]
    assert len(loaded.content) > 4096
    keys = _get(world.alice, f"{table.path}/credentials", Accept_Encoding="gzip, zstd")
    made = _created(
        world.admin,
        f"{world.root}/namespaces/{ns}/tables",
        json.dumps({"name": unique("t"), "schema": WIDE}).encode(),
        Accept_Encoding="gzip, zstd",
    )
    assert made.json().get("storage-credentials"), made.text
    for answer in (loaded, keys, made):
        assert "content-encoding" not in answer.headers


def test_a_gzip_body_is_read(world: World) -> None:
    name = unique("packed")
    body = gzip.compress(json.dumps({"namespace": [name], "properties": {"a": "b" * 100_000}}).encode())
    made = _created(world.admin, f"{world.root}/namespaces", body, Content_Encoding="gzip")
    assert made.status_code == 200, made.text
    assert world.admin.get(f"{world.root}/namespaces/{name}").json()["properties"]["a"] == "b" * 100_000
    key = {"Idempotency_Key": str(uuid4())}
    other = {"namespace": [unique("packed")], "properties": {}}
    first = _created(
        world.admin,
        f"{world.root}/namespaces",
        gzip.compress(json.dumps(other).encode()),
        Content_Encoding="gzip",
        **key,
    )
    # The same request in another coding is the same request.
    second = _created(world.admin, f"{world.root}/namespaces", json.dumps(other).encode(), **key)
    assert (first.status_code, second.status_code) == (200, 200), (first.text, second.text)


@pytest.mark.threat("LG-DIS-23")
@pytest.mark.parametrize("path", ["/management/v1/role", "/catalog/v1/{prefix}/namespaces"])
def test_a_bomb_is_refused_at_the_limit_of_plain_bodies(world: World, path: str) -> None:
    bomb = gzip.compress(b'{"name": "' + b" " * (256 << 20) + b'"}')
    assert len(bomb) < 1 << 20
    answer = _created(world.admin, path.format(prefix=world.warehouse), bomb, Content_Encoding="gzip")
    assert error_triple(answer)[:2] == (413, "PayloadTooLarge")


def test_another_coding_is_415_and_says_what_is_read(world: World) -> None:
    body = json.dumps({"namespace": [unique("n")]}).encode()
    for coding in ("br", "zstd", "gzip, gzip"):
        answer = _created(world.admin, f"{world.root}/namespaces", body, Content_Encoding=coding)
        status, kind, message = error_triple(answer)
        assert (status, kind) == (415, "UnsupportedMediaTypeException")
        assert "Send it with content-encoding gzip" in message
        assert answer.headers["accept-encoding"] == "gzip"
    damaged = _created(world.admin, f"{world.root}/namespaces", body, Content_Encoding="gzip")
    assert error_triple(damaged)[:2] == (400, "BadRequestException")


def test_members_of_later_versions_are_ignored_except_in_requirements(world: World, ns: str) -> None:
    table = world.table(ns)
    update = {"action": "set-properties", "updates": {"a": "b"}, "later": 1}
    assert world.commit(world.admin, table.path, update).status_code == 200
    requirement = {"type": "assert-current-schema-id", "current-schema-id": 0, "later": 1}
    refused = world.commit(world.admin, table.path, update, requirements=(requirement,))
    assert error_triple(refused)[:2] == (400, "BadRequestException")
    assert "later" in error_triple(refused)[2]


def test_pyiceberg_works_with_compressed_responses(world: World, ns: str) -> None:
    table = world.table(ns, schema=WIDE)
    catalog = RestCatalog(
        "lakegate",
        uri=f"{world.base}/catalog",
        warehouse=str(world.ready.warehouse),
        token=world.alice.token,
        **{"header.X-Iceberg-Access-Delegation": "client-managed"},
    )
    codings: list[str | None] = []

    def note(answer: Any, *_: Any, **__: Any) -> None:
        codings.append(answer.headers.get("content-encoding"))

    catalog._session.hooks["response"].append(note)
    assert len(catalog.load_table((ns, table.name)).schema().fields) == 79
    assert codings[-1] in ("gzip", "zstd")
