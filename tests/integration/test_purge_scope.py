# SPDX-License-Identifier: Apache-2.0
"""The reach of a purge on a real store that enforces session policies, and a purge whose store stops answering."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec
import pytest

from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.features.deletion import purge as purges
from gateway.features.deletion.purge import Purge
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Location
from gateway.storage.errors import StorageUnavailable
from gateway.storage.files import Files
from gateway.storage.registry import stored_profile
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.credential import S3TemporaryCredential
from gateway.storage.s3.profile import SCHEME, S3Profile
from gateway.vending.vendor import Vendor
from tests.support.servers.scoped_store import BUCKET, Store, can_delete, can_list, is_allowed, store, sts
from tests.support.servers.storage_routes import clients, files_of
from tests.support.servers.toxic import BEFORE, SILENT, WELL, Toxic

__all__ = ["store", "sts"]

pytestmark = [pytest.mark.chaos, pytest.mark.integration]

PLACE = Location(SCHEME, BUCKET, ("base", "ns", "purged"))
INSIDE = ["base/ns/purged/data/a.parquet", "base/ns/purged/metadata/00000-x.metadata.json"]
SIBLINGS = ["base/ns/purged2/data/a.parquet", "base/ns/purged.bak", "base/ns/other/data/a.parquet", "base/purged/x"]


def _purge(store: Store, sts: Sts, files: Files | None = None) -> Purge:
    """Return a purge of a warehouse on this store; it does not use a database."""
    storage = SimpleNamespace(of=AsyncMock(return_value=store.credential))
    return Purge(
        database=cast(Any, None),
        door=cast(Any, None),
        files=files or files_of(),
        storage=cast(Any, storage),
        vendor=Vendor(clients(sts)),
    )


def _warehouse(profile: S3Profile) -> ResolvedWarehouse:
    return ResolvedWarehouse(
        id=uuid4(),
        project_id="p",
        name="w",
        active=True,
        decode=stored_profile,
        profile=msgspec.json.encode(profile),
        profile_version=1,
        credential_id=None,
        allowed_format_versions=(2,),
        default_format_version=None,
    )


def _put(store: Store, keys: list[str]) -> None:
    client = store.client("s3", store.credential)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: client.put_object(Bucket=BUCKET, Key=key, Body=b"x"), keys))


def _there(store: Store, prefix: str) -> set[str]:
    pages = store.client("s3", store.credential).get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    return {each["Key"] for page in pages for each in page.get("Contents", ())}


@pytest.mark.threat("LG-LOC-24")
async def test_purge_credential_reaches_its_own_location_only(store: Store, sts: Sts) -> None:
    _put(store, [*INSIDE, *SIBLINGS])
    profile = store.profile()
    credential = await _purge(store, sts)._credential(_warehouse(profile), profile, PLACE)
    assert isinstance(credential, S3TemporaryCredential), "the purge must use a temporary credential"
    client = store.client("s3", credential)
    for key in SIBLINGS:
        assert not can_delete(client, key)
        assert not is_allowed(partial(client.get_object, Bucket=BUCKET, Key=key))
        assert not is_allowed(partial(client.put_object, Bucket=BUCKET, Key=key, Body=b"y"))
    for prefix in (None, "base/", "base/ns/", "base/ns/purged", "base/ns/purged2/"):
        assert not can_list(client, prefix)
    assert set(SIBLINGS) <= _there(store, "base/")
    assert can_list(client, "base/ns/purged/")
    assert all(can_delete(client, key) for key in INSIDE)
    assert not any(key in _there(store, "base/") for key in INSIDE)


@pytest.mark.threat("LG-LOC-24", "LG-LOC-25")
async def test_purge_with_a_siblings_key_deletes_nothing(store: Store, sts: Sts) -> None:
    _put(store, [*INSIDE, *SIBLINGS])
    profile = store.profile()
    purge = _purge(store, sts)
    credential = await purge._credential(_warehouse(profile), profile, PLACE)
    for key in SIBLINGS:
        with pytest.raises(InvalidLocation):
            await purge._files.delete_below(profile, credential, PLACE, [INSIDE[0], key])
    assert {*INSIDE, *SIBLINGS} <= _there(store, "base/")


@pytest.fixture
def proxy(store: Store) -> Iterator[Toxic]:
    """Run a proxy between the purge and the store."""
    toxic = Toxic(urlsplit(store.url).port or 0)
    yield toxic
    toxic.close()


async def test_purge_interrupted_by_a_store_stall_completes_in_the_next_run(
    store: Store,
    sts: Sts,
    proxy: Toxic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purges, "report", AsyncMock())
    _put(store, [f"base/ns/purged/data/{number}.parquet" for number in range(1500)])
    _put(store, SIBLINGS)
    profile = store.profile(endpoint=f"http://127.0.0.1:{proxy.port}")
    warehouse = _warehouse(profile)
    permit = SimpleNamespace(warehouse=lambda _: warehouse, operation=SimpleNamespace(warehouse=None))
    purge = _purge(store, sts, files_of(request_seconds=5.0, total_seconds=6.0))
    deletions = 0

    def after_the_first_page(_: int, sent: bytes) -> str | None:
        nonlocal deletions
        deletions += sent.startswith(b"POST") and b"delete" in sent[:300]
        return BEFORE if deletions > 1 else None

    proxy.cut, proxy.afterwards = after_the_first_page, SILENT
    with pytest.raises(StorageUnavailable):
        await purge._delete(cast(Any, permit), PLACE, cast(Any, None))
    left = _there(store, "base/ns/purged/")
    assert 0 < len(left) < 1500, "the purge must have been interrupted in its middle"
    proxy.become(WELL)
    again = _purge(store, sts)
    # The store may have continued to process requests from before it stopped answering.
    assert 0 < await again._delete(cast(Any, permit), PLACE, cast(Any, None)) <= len(left)
    assert _there(store, "base/ns/purged/") == set()
    assert await again._delete(cast(Any, permit), PLACE, cast(Any, None)) == 0, "a repeated purge must delete nothing"
    assert set(SIBLINGS) <= _there(store, "base/")
