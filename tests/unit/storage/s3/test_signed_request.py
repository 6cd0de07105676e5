# SPDX-License-Identifier: Apache-2.0
"""Requests to S3 stores that clients want to be signed: only known ones on keys of the table are read."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import ReadRequest, SignedAction, UnsignedRequest
from gateway.scope.location import Location
from gateway.storage.s3.profile import SCHEME, Flavor, S3Profile, SigningUrlStyle
from gateway.storage.s3.signing.request import read_request

_STORE = "http://127.0.0.1:9000"
_COMPATIBLE = S3Profile(
    bucket="lake", region="local-1", endpoint=_STORE, flavor=Flavor.S3_COMPAT, path_style_access=True
)
_AWS = S3Profile(bucket="lake", region="eu-central-1")
_TABLE = Location(SCHEME, "lake", ("wh", "t1"))
_INSIDE = f"{_STORE}/lake/wh/t1/data/f.parquet"


def _read(
    method: str,
    uri: str,
    *,
    profile: S3Profile = _COMPATIBLE,
    headers: dict[str, str] | None = None,
    body: str | None = None,
    region: str | None = None,
) -> ReadRequest:
    sent = UnsignedRequest(
        region=region or profile.region, method=method, uri=uri, headers=tuple((headers or {}).items()), body=body
    )
    return read_request(profile, _TABLE, sent)


def _error(method: str, uri: str, **options: object) -> str:
    with pytest.raises(CatalogError) as refused:
        _read(method, uri, **options)  # type: ignore[arg-type]  # forwarded to a typed function
    assert refused.value.code == 400
    return refused.value.type


@pytest.mark.parametrize(
    ("method", "query", "action"),
    [
        ("GET", "", SignedAction.READ),
        ("HEAD", "", SignedAction.READ),
        ("GET", "?x-id=GetObject", SignedAction.READ),
        ("PUT", "", SignedAction.WRITE),
        ("PUT", "?partNumber=1&uploadId=abc.def", SignedAction.WRITE),
        ("POST", "?uploads", SignedAction.WRITE),
        ("POST", "?uploads=", SignedAction.WRITE),
        ("POST", "?uploadId=abc", SignedAction.WRITE),
        ("DELETE", "?uploadId=abc", SignedAction.WRITE),
        ("DELETE", "", SignedAction.DELETE),
    ],
)
def test_requests_on_objects_have_their_action(method: str, query: str, action: SignedAction) -> None:
    read = _read(method, _INSIDE + query)
    assert read.action is action
    assert read.keys == ("wh/t1/data/f.parquet",)


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("GET", "?acl"),
        ("PUT", "?acl"),
        ("GET", "?versionId=1"),
        ("GET", "?uploadId=abc"),
        ("GET", "?uploadId=abc&max-parts=10"),
        ("DELETE", "?versionId=1"),
        ("PUT", "?tagging"),
        ("PUT", "?retention"),
        ("PUT", "?legal-hold"),
        ("PUT", "?partNumber=1"),
        ("PUT", "?uploadId=abc"),
        ("PUT", "?partNumber=x&uploadId=abc"),
        ("POST", ""),
        ("POST", "?restore"),
        ("POST", "?select&select-type=2"),
        ("POST", "?uploads=1"),
        ("GET", "?response-content-type=text/html"),
        ("GET", "?X-Amz-Expires=604800&X-Amz-Signature=0"),
        ("PATCH", ""),
        ("OPTIONS", ""),
        ("DELETE", "?tagging"),
        ("GET", "?torrent"),
        ("GET", "?attributes"),
    ],
)
def test_other_requests_on_objects_are_refused(method: str, query: str) -> None:
    assert _error(method, _INSIDE + query) == "UnsupportedSignRequest"


@pytest.mark.parametrize(
    "path",
    [
        "lake/wh/t10/f",
        "lake/wh/t1",
        "lake/wh/t2/f",
        "lake/wh/T1/f",
        "lake/f",
        "other/wh/t1/f",
        "lake/wh/t1/../t2/f",
        "lake/wh/t1/%2e%2e/t2/f",
        "lake/wh/t1/%252e%252e/t2/f",
        "lake/wh/t1/..%2ft2/f",
        "lake/wh/t1/..%252ft2/f",
        "lake/wh/t1//f",
        "lake//wh/t1/f",
        "lake/wh/t1/./f",
        "lake/wh/t1/a%5C..%5Cf",
        "lake/wh/t1/a%00",
        "lake/wh/t1/a%0Ab",
        "lake%2Fwh/t1/f/",
    ],
)
def test_keys_outside_of_the_table_and_ambiguous_ones_are_refused(path: str) -> None:
    if path == "lake%2Fwh/t1/f/":  # an encoded slash is one: it is signed in its canonical form
        assert _read("GET", f"{_STORE}/{path}").uri == f"{_STORE}/lake/wh/t1/f/"
        return
    assert _error("GET", f"{_STORE}/{path}") == "RequestUriMismatch"


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:9001/lake/wh/t1/f",
        "https://127.0.0.1:9000/lake/wh/t1/f",
        "http://user@127.0.0.1:9000/lake/wh/t1/f",
        "http://127.0.0.1:9000.evil.example/lake/wh/t1/f",
        "http://other.127.0.0.1:9000/wh/t1/f",
        "//127.0.0.1:9000/lake/wh/t1/f",
        "/lake/wh/t1/f",
    ],
)
def test_other_servers_are_refused(uri: str) -> None:
    assert _error("GET", uri) == "RequestUriMismatch"


@pytest.mark.parametrize(
    "uri", [_INSIDE + "#x", _INSIDE + "\\x", f"{_STORE}/lake/wh/t1/a+b", f"{_STORE}/lake/wh/t1/ä", _INSIDE + "?a=%ff"]
)
def test_uris_with_raw_characters_are_refused(uri: str) -> None:
    assert _error("GET", uri) == "UnsupportedSignRequest"


@pytest.mark.parametrize(
    "start",
    [
        "https://lake.s3.eu-central-1.amazonaws.com/",
        "https://s3.eu-central-1.amazonaws.com/lake/",
        "https://lake.s3.dualstack.eu-central-1.amazonaws.com/",
        "https://LAKE.s3.eu-central-1.amazonaws.com:443/",
    ],
)
def test_aws_is_reached_with_the_bucket_in_host_or_path(start: str) -> None:
    assert _read("GET", start + "wh/t1/f", profile=_AWS).keys == ("wh/t1/f",)
    assert _error("GET", start + "wh/t2/f", profile=_AWS) == "RequestUriMismatch"


def test_the_profile_can_restrict_the_form_of_urls() -> None:
    path = S3Profile(bucket="lake", region="eu-central-1", remote_signing_url_style=SigningUrlStyle.PATH)
    host = S3Profile(bucket="lake", region="eu-central-1", remote_signing_url_style=SigningUrlStyle.VIRTUAL_HOST)
    in_path, in_host = (
        "https://s3.eu-central-1.amazonaws.com/lake/wh/t1/f",
        "https://lake.s3.eu-central-1.amazonaws.com/wh/t1/f",
    )
    assert _read("GET", in_path, profile=path).keys == _read("GET", in_host, profile=host).keys == ("wh/t1/f",)
    assert _error("GET", in_host, profile=path) == _error("GET", in_path, profile=host) == "RequestUriMismatch"


def test_a_store_that_finds_the_bucket_in_the_path_gets_no_signature_for_a_host() -> None:
    """Such a store takes `wh`, the first part of the key, for the bucket, whatever the host is."""
    in_host = "http://lake.store.example:9000/wh/t1/f"
    hosts = S3Profile(bucket="lake", region="local-1", endpoint="http://store.example:9000", flavor=Flavor.S3_COMPAT)
    assert _read("GET", in_host, profile=hosts).keys == ("wh/t1/f",)
    paths = structs.replace(hosts, path_style_access=True)
    assert _error("GET", in_host, profile=paths) == "RequestUriMismatch"
    stated = structs.replace(paths, remote_signing_url_style=SigningUrlStyle.VIRTUAL_HOST)
    assert _read("GET", in_host, profile=stated).keys == ("wh/t1/f",)


def test_another_region_is_refused() -> None:
    assert _error("GET", _INSIDE, region="us-east-1") == "RegionMismatch"


_LIST = f"{_STORE}/lake?list-type=2"


def test_lists_below_the_table_are_read() -> None:
    for prefix in ("wh/t1/", "wh/t1/data/", "wh/t1/data/p=1"):
        read = _read("GET", f"{_LIST}&prefix={quote(prefix, safe='')}&delimiter=%2F&max-keys=100&encoding-type=url")
        assert (read.action, read.keys) == (SignedAction.READ, (prefix,))


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("", "ListWithoutPrefix"),
        ("&prefix=", "ListWithoutPrefix"),
        ("&prefix=wh%2Ft1", "InvalidListPrefix"),
        ("&prefix=wh%2Ft10%2F", "InvalidListPrefix"),
        ("&prefix=wh%2Ft1%2F..%2Ft2%2F", "InvalidListPrefix"),
        ("&prefix=wh%2F", "InvalidListPrefix"),
        ("&prefix=wh%2Ft1%2F&prefix=wh", "RepeatedListParameter"),
        ("&prefix=wh%2Ft1%2F&%70refix=wh", "RepeatedListParameter"),
        ("&prefix=wh%2Ft1%2F&versions", "UnsupportedListParameter"),
        ("&prefix=wh%2Ft1%2F&list-type=1", "RepeatedListParameter"),
        ("&prefix=wh%2Ft1%2F&delimiter=a", "UnsupportedListParameter"),
    ],
)
def test_other_lists_are_refused(query: str, error: str) -> None:
    assert _error("GET", _LIST + query) == error


@pytest.mark.parametrize(
    "query", ["?prefix=wh%2Ft1%2F", "?list-type=1&prefix=wh%2Ft1%2F", "?location", "?uploads", "?policy", ""]
)
def test_other_requests_on_the_bucket_are_refused(query: str) -> None:
    assert _error("GET", f"{_STORE}/lake{query}") == "UnsupportedListParameter"
    assert _error("PUT", f"{_STORE}/lake{query}") == "UnsupportedSignRequest"


def _delete(*keys: str, inner: str = "") -> str:
    objects = "".join(f"<Object><Key>{key}</Key>{inner}</Object>" for key in keys)
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{objects}<Quiet>true</Quiet></Delete>'


def test_a_deletion_of_several_objects_signs_the_hash_of_its_body() -> None:
    body = '<?xml version="1.0" encoding="UTF-8"?>' + _delete("wh/t1/a", "wh/t1/b&amp;c")
    read = _read("POST", f"{_STORE}/lake?delete", headers={"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}, body=body)
    assert (read.action, read.keys, read.checks_body) == (SignedAction.DELETE, ("wh/t1/a", "wh/t1/b&c"), True)
    assert len(read.payload) == 64


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (None, "UnsupportedSignRequest"),
        ("", "UnsupportedSignRequest"),
        (_delete(), "UnsupportedSignRequest"),
        (_delete("wh/t1/a", "wh/t2/b"), "RequestUriMismatch"),
        (_delete("wh/t1/../t2/b"), "RequestUriMismatch"),
        (_delete("wh/t1/a", inner="<VersionId>1</VersionId>"), "UnsupportedSignRequest"),
        (_delete("wh/t1/a", inner="<Key>wh/t2/a</Key>"), "UnsupportedSignRequest"),
        ("<Delete><Object><Key>wh/t1/a<Key>wh/t2/a</Key></Key></Object></Delete>", "UnsupportedSignRequest"),
        ("<Delete><Object key='1'><Key>wh/t1/a</Key></Object></Delete>", "UnsupportedSignRequest"),
        ("<Delete><Other><Object><Key>wh/t2/a</Key></Object></Other></Delete>", "UnsupportedSignRequest"),
        (
            "<!DOCTYPE d [<!ENTITY e 'wh/t2/a'>]><Delete><Object><Key>&e;</Key></Object></Delete>",
            "UnsupportedSignRequest",
        ),
        ("<Delete><Object><Key>wh/t1/a<!-- --></Key></Object></Delete>", "UnsupportedSignRequest"),
        ("<Delete><Object><Key><![CDATA[wh/t1/a]]></Key></Object></Delete>", "UnsupportedSignRequest"),
        ("<Delete" + _delete("wh/t1/a"), "UnsupportedSignRequest"),
        (_delete(*("wh/t1/a",) * 1001), "UnsupportedSignRequest"),
    ],
)
def test_other_bodies_of_deletions_are_refused(body: str | None, error: str) -> None:
    assert _error("POST", f"{_STORE}/lake?delete", body=body) == error


@pytest.mark.parametrize(
    "header",
    [
        "x-amz-copy-source",
        "x-amz-acl",
        "x-amz-grant-read",
        "x-amz-tagging",
        "x-amz-website-redirect-location",
        "x-amz-object-lock-mode",
        "x-amz-bypass-governance-retention",
        "x-amz-mfa",
        "x-amz-metadata-directive",
        "x-amz-meta-owner",
        "x-amz-server-side-encryption-customer-key",
        "x-amz-server-side-encryption-aws-kms-key-id",
        "x-amz-request-payer",
        "x-http-method-override",
        "x-forwarded-host",
    ],
)
def test_headers_that_change_the_request_are_refused(header: str) -> None:
    assert _error("PUT", _INSIDE, headers={header: "other"}) == "UnsupportedSignRequest"


def test_headers_are_signed_once_and_those_of_the_connection_are_not() -> None:
    sent_headers = {"Content-Type": "a/b", "Range": "bytes=0-1", "User-Agent": "x", "X-Amz-Date": "1", "Host": "other"}
    read = _read("PUT", _INSIDE, headers=sent_headers)
    assert read.headers == {"content-type": "a/b"}
    assert read.unsigned_headers == {"range": "bytes=0-1", "user-agent": "x"}
    sent = UnsignedRequest(
        region=_COMPATIBLE.region, method="PUT", uri=_INSIDE, headers=(("if-match", "a"), ("If-Match", "b"))
    )
    with pytest.raises(CatalogError):
        read_request(_COMPATIBLE, _TABLE, sent)


@given(st.text(min_size=1, max_size=40), st.sampled_from(["wh/t1/", "wh/t1", "wh/", "wh/t2/", ""]))
def test_an_object_that_is_signed_lies_below_the_table(name: str, start: str) -> None:
    uri = f"{_STORE}/lake/" + quote(start + name, safe="/-_.~")
    try:
        read = _read("GET", uri)
    except CatalogError:
        return
    assert read.keys[0].startswith("wh/t1/")
    assert unquote(read.uri) == f"{_STORE}/lake/{read.keys[0]}"
    assert read.keys[0] == start + name
