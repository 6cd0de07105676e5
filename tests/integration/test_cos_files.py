# SPDX-License-Identifier: Apache-2.0
"""Files of warehouses in COS, on a store that serves the same protocol (SeaweedFS)."""

from __future__ import annotations

import json

import pytest

from gateway.scope.endpoint import StoreAddresses
from gateway.storage.cos.profile import CosSecretKey
from gateway.storage.errors import FileExists, FileMissing, StorageDenied
from gateway.storage.provider import ClientOptions
from gateway.storage.registry import decode_profile, open_clients
from tests.support.servers.scoped_store import Store, store

__all__ = ["store"]


async def test_files_are_written_once_read_listed_and_deleted(store: Store) -> None:
    bucket = "lake-1250000000"
    store.client("s3", store.credential).create_bucket(Bucket=bucket)
    document = {"type": "cos", "bucket": bucket, "region": "ap-guangzhou", "key-prefix": "wh"}
    profile = decode_profile(json.dumps(document).encode())
    keys = store.credential
    key = CosSecretKey(secret_id=keys.access_key_id, secret_key=keys.secret_access_key)
    files = open_clients(ClientOptions(addresses={"cos": StoreAddresses(files=store.url)})).of(profile).files
    await files.put(profile, key, "wh/t/a.json", b"{}")
    with pytest.raises(FileExists):
        await files.put(profile, key, "wh/t/a.json", b"other")
    assert await files.get(profile, key, "wh/t/a.json", 10) == b"{}"
    assert await files.list(profile, key, "wh/t/", 10) == ["wh/t/a.json"]
    await files.delete(profile, key, ["wh/t/a.json", "wh/t/missing.json"])
    with pytest.raises(FileMissing):
        await files.get(profile, key, "wh/t/a.json", 10)
    with pytest.raises(StorageDenied):
        await files.list(profile, CosSecretKey(secret_id="AKIDother", secret_key="wrong"), "wh/", 10)
