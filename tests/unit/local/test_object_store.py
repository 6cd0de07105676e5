# SPDX-License-Identifier: Apache-2.0
"""The object store's configuration: role, policy and internal keys permit no further access."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec

from lakegate.local import object_store, ports, ready
from lakegate.local.object_store import ObjectStore


def _store(tmp_path: Path) -> ObjectStore:
    chosen = ports.Ports(**dict.fromkeys(ports.Ports.__struct_fields__, 12_345))
    return ObjectStore(Path("/weed"), tmp_path, tmp_path, chosen, ready.generate())


def _written(tmp_path: Path) -> Path:
    (tmp_path / "conf").mkdir()
    _store(tmp_path)._write_configuration()
    return tmp_path / "conf"


def test_only_the_gateways_user_may_assume_the_role(tmp_path: Path) -> None:
    iam = msgspec.json.decode((_written(tmp_path) / "iam.json").read_bytes())
    (role,) = iam["roles"]
    (statement,) = role["trustPolicy"]["Statement"]
    assert statement["Principal"] == {"AWS": [object_store.GATEWAY_USER]}
    assert iam["policy"] == {"defaultEffect": "Deny"}


def test_the_role_reaches_the_bucket_and_nothing_else(tmp_path: Path) -> None:
    iam = msgspec.json.decode((_written(tmp_path) / "iam.json").read_bytes())
    resources = [r for policy in iam["policies"] for s in policy["document"]["Statement"] for r in s["Resource"]]
    assert sorted(resources) == ["arn:aws:s3:::lakegate", "arn:aws:s3:::lakegate/*"]


def test_all_four_internal_token_kinds_have_distinct_keys(tmp_path: Path) -> None:
    jwt = tomllib.loads((_written(tmp_path) / "security.toml").read_text())["jwt"]
    keys = [jwt["signing"]["key"], jwt["signing"]["read"]["key"]]
    keys += [jwt["filer_signing"]["key"], jwt["filer_signing"]["read"]["key"]]
    assert len(set(keys)) == 4 and min(map(len, keys)) >= 32


def test_the_storage_profile_contains_no_secret(tmp_path: Path) -> None:
    profile = _store(tmp_path).profile()
    assert profile["sts-role-arn"] == object_store.VEND_ROLE
    assert not [name for name in profile if re.search("secret|key-id|password", name)]
