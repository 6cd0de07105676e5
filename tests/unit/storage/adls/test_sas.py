# SPDX-License-Identifier: Apache-2.0
"""A shared access signature opens exactly one directory of a file system."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.storage.adls.profile import SCHEME
from gateway.storage.adls.proof import UnsupportedSignature, evaluate, prove_scope
from gateway.storage.adls.sas import (
    DelegationKey,
    build_directory,
    read_directory,
    sign_with_account,
    sign_with_delegation,
)

_AUTHORITY = "lake@account1.dfs.core.windows.net"
_TABLE = Location(SCHEME, _AUTHORITY, ("wh", "t1"))
_SECRET = b"k" * 64
_NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
_KEY = DelegationKey(
    object_id="11111111-1111-1111-1111-111111111111",
    tenant_id="22222222-2222-2222-2222-222222222222",
    start="2026-11-25T00:00:00Z",
    expiry="2026-12-01T00:00:00Z",
    service="b",
    version="2022-11-02",
    value=_SECRET,
)
_PATHS = ("wh/t10/f", "wh", "wh/t2/data", "t1/f", "")
_SEGMENT = st.text(min_size=1, max_size=12)


def _signatures(location: Location, level: AccessLevel) -> tuple[str, str]:
    directory = read_directory(build_directory(location, level))
    expiry = _NOW + timedelta(hours=1)
    return (
        sign_with_account(directory, _SECRET, start=_NOW, expiry=expiry),
        sign_with_delegation(directory, _KEY, start=_NOW, expiry=expiry, correlation_id=_KEY.object_id),
    )


@pytest.mark.parametrize("level", AccessLevel)
def test_a_signature_opens_the_table_and_nothing_else(level: AccessLevel) -> None:
    for signature in _signatures(_TABLE, level):
        assert prove_scope(signature, _SECRET, _TABLE, level, _PATHS) == []


@given(st.lists(_SEGMENT, min_size=1, max_size=3), st.sampled_from(AccessLevel), st.lists(_SEGMENT, max_size=4))
def test_every_accepted_location_is_proven(segments: list[str], level: AccessLevel, others: list[str]) -> None:
    try:
        location = Location(SCHEME, _AUTHORITY, tuple(segments))
        signatures = _signatures(location, level)
    except CatalogError:
        return
    for signature in signatures:
        assert prove_scope(signature, _SECRET, location, level, ("/".join(others), *others)) == []


@pytest.mark.parametrize("field", ["sp", "sdd", "st", "se", "spr", "sv", "scid", "skoid", "ske"])
def test_a_changed_field_opens_nothing(field: str) -> None:
    _, signature = _signatures(_TABLE, AccessLevel.READ)
    fields = {name: values[0] for name, values in parse_qs(signature).items()}
    assert evaluate(signature, _SECRET, "read", account="account1", filesystem="lake", path="wh/t1/f")
    changed = {"sp": "racwdl", "sdd": "1", "sv": "2021-12-02", "spr": "https,http"}.get(field, fields[field] + "0")
    query = urlencode(fields | {field: changed})
    for path in ("wh/t1/f", "wh/t2/f", "wh"):
        try:
            allowed = evaluate(query, _SECRET, "read", account="account1", filesystem="lake", path=path)
        except UnsupportedSignature:
            continue
        assert not allowed


@pytest.mark.parametrize("extra", ["&sp=racwdl", "&sr=c", "&saoid=1", "&si=policy", "&sig=x"])
def test_an_added_field_is_not_known(extra: str) -> None:
    signature, _ = _signatures(_TABLE, AccessLevel.READ)
    with pytest.raises(UnsupportedSignature):
        evaluate(signature + extra, _SECRET, "read", account="account1", filesystem="lake", path="wh/t1/f")


@pytest.mark.threat("LG-POL-05")
def test_a_name_in_the_path_cannot_add_fields_to_the_signature() -> None:
    location = Location(SCHEME, _AUTHORITY, ("wh", "t1&sp=racwdl&sdd=1"))
    for signature in _signatures(location, AccessLevel.READ):
        assert parse_qs(signature)["sp"] == ["rl"]
        assert prove_scope(signature, _SECRET, location, AccessLevel.READ, _PATHS) == []


def test_a_directory_whose_name_ends_with_a_dot_is_refused() -> None:
    with pytest.raises(CatalogError):
        Location(SCHEME, _AUTHORITY, ("wh", "t1."))


def test_signatures_equal_those_of_the_stores_own_library() -> None:
    """Compare with `generate_directory_sas` of azure-storage-file-datalake 12.18.0, for the same version and keys.

    The signature covers every other field, so equal signatures have equal texts to sign.
    """
    directory = read_directory(
        build_directory(Location(SCHEME, _AUTHORITY, ("wh", "t1", "ä&b=c")), AccessLevel.READ_WRITE_DELETE)
    )
    expiry = _NOW + timedelta(hours=1)
    by_account = sign_with_account(directory, _SECRET, start=_NOW, expiry=expiry)
    by_key = sign_with_delegation(directory, _KEY, start=_NOW, expiry=expiry, correlation_id=_KEY.object_id)
    common = {"sp": "racwdl", "st": "2026-11-25T12:00:00Z", "se": "2026-11-25T13:00:00Z", "spr": "https"}
    common |= {"sv": "2022-11-02", "sr": "d", "sdd": "3"}
    delegated = {
        "scid": "11111111-1111-1111-1111-111111111111",
        "skoid": "11111111-1111-1111-1111-111111111111",
        "sktid": "22222222-2222-2222-2222-222222222222",
        "skt": "2026-11-25T00:00:00Z",
        "ske": "2026-12-01T00:00:00Z",
        "sks": "b",
        "skv": "2022-11-02",
    }
    assert dict(parse_qsl(by_account)) == common | {"sig": "Xzunaemf++uulRxPwc4Tk6OPlKJ3ZPwx/uP3VukUi8Q="}
    assert dict(parse_qsl(by_key)) == common | delegated | {"sig": "lfp+odhJNq7yvnjoCJ4byXl5tf7yxhJrtroUqO4Hwmo="}


def test_a_description_of_a_directory_keeps_its_format() -> None:
    """The text is the policy in audit and proofs."""
    assert build_directory(_TABLE, AccessLevel.READ) == (
        '{"account":"account1","filesystem":"lake","path":"wh/t1","permissions":"rl"}'
    )
