# SPDX-License-Identifier: Apache-2.0
"""Paths are decoded once from the original bytes, so that no name becomes two segments or another name."""

from __future__ import annotations

from typing import Any, Never
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.path_refs import principal_in_path
from gateway.api.raw_path import RawPath, decode_path
from gateway.iceberg.errors import BadRequestException

names = st.text(
    alphabet=st.characters(exclude_characters="/\\\x00", exclude_categories=["Cs"]), min_size=1, max_size=20
).filter(lambda name: name not in (".", ".."))


async def _refusal_of(raw: bytes) -> tuple[bytes, bytes]:
    """Return (content type, body) of the response to an undecodable path."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def unreachable(*_: Any) -> Never:
        raise AssertionError("a refused request must not reach the application")

    scope: Any = {"type": "http", "method": "GET", "path": raw.decode(), "raw_path": raw, "headers": []}
    await RawPath(unreachable)(scope, unreachable, send)
    return dict(sent[0]["headers"])[b"content-type"], sent[1]["body"]


async def test_an_undecodable_path_is_refused_with_the_error_format_of_its_api() -> None:
    kind, body = await _refusal_of(b"/scim/v2/Users/a%00")
    assert kind == b"application/scim+json"
    assert b"urn:ietf:params:scim:api:messages:2.0:Error" in body
    kind, body = await _refusal_of(b"/catalog/v1/a%00")
    assert kind == b"application/json"
    assert body.startswith(b'{"error":')


@given(names, names)
def test_names_encoded_by_python_clients_are_decoded(first: str, second: str) -> None:
    assert decode_path(f"/v1/{quote(first, safe='')}/x/{quote(second, safe='')}".encode()) == f"/v1/{first}/x/{second}"


@given(names, names)
def test_names_encoded_by_java_clients_are_decoded(first: str, second: str) -> None:
    """`URLEncoder` encodes as HTML forms do: a space is a plus sign, and a plus sign is `%2B`."""
    assert decode_path(f"/v1/{quote_plus(first)}/x/{quote_plus(second)}".encode()) == f"/v1/{first}/x/{second}"


@given(names)
def test_a_doubly_encoded_name_is_decoded_once(name: str) -> None:
    once = quote(name, safe="")
    assert decode_path(f"/{quote(once, safe='')}".encode()) == f"/{once}"


@given(st.binary(max_size=40))
def test_no_bytes_change_the_number_of_segments_or_give_a_forbidden_one(raw: bytes) -> None:
    path = b"/" + raw
    try:
        decoded = decode_path(path)
    except BadRequestException:
        return
    sent = path.split(b"?", 1)[0]
    assert decoded.count("/") == sent.count(b"/")
    assert "\x00" not in decoded
    assert "\\" not in decoded
    assert not {".", ".."} & set(decoded.split("/"))


@pytest.mark.parametrize(
    "segment",
    [
        "a%2Fb",
        "a%2fb",
        "%2F",
        "a%5Cb",
        "a\\b",
        "a%00",
        "%00",
        "..",
        ".",
        "%2e%2e",
        "%2E",
        ".%2e",
        "%ff",
        "a%C3%28",
        "%c0%af",
    ],
)
def test_an_ambiguous_path_is_refused(segment: str) -> None:
    with pytest.raises(BadRequestException):
        decode_path(f"/v1/{segment}/tables".encode())


def test_bytes_beyond_ascii_are_refused() -> None:
    with pytest.raises(BadRequestException, match="percent-encoded"):
        decode_path("/v1/ü".encode())


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"/a?b=/c", "/a"),
        (b"/sales%1Feu", "/sales\x1feu"),
        (b"/%252e%252e", "/%2e%2e"),
        (b"/a%2Bb+c", "/a+b c"),
        (b"/...", "/..."),
        (b"/a%3Fb", "/a?b"),
        (b"//a", "//a"),
        (b"/100%", "/100%"),
    ],
)
def test_other_paths_pass_unchanged(raw: bytes, path: str) -> None:
    assert decode_path(raw) == path


@pytest.mark.parametrize("column", ["", ".", "%2e%2E", "a%2Fb", "a%5Cb", "%00"])
@pytest.mark.parametrize("rest", ["/grants", "/grants/history", "/assignments"])
def test_a_column_name_unfit_for_a_path_is_refused_with_the_alternative(column: str, rest: str) -> None:
    with pytest.raises(BadRequestException, match="field-id:<id>"):
        decode_path(f"/management/v1/warehouse/w/table/t/columns/{column}{rest}".encode())
    if column:
        with pytest.raises(BadRequestException) as plain:
            decode_path(f"/catalog/v1/w/namespaces/columns/tables/{column}".encode())
        assert "field-id" not in plain.value.message


@pytest.mark.parametrize("path", ["/%6danagement/v1/t/columns//grants", "/management/v1/t/col%75mns//grants"])
def test_a_column_with_an_empty_name_is_refused_for_every_spelling_of_the_path(path: str) -> None:
    with pytest.raises(BadRequestException, match="field-id:<id>"):
        decode_path(path.encode())


def test_the_column_list_of_a_table_has_a_path_without_a_column_name() -> None:
    path = "/management/v1/warehouse/w/table/t/columns/grants"
    assert decode_path(path.encode()) == path


ids = (
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)
    | st.text(alphabet="/\\a", min_size=1, max_size=8)
).map(lambda subject: f"oidc~{subject}")


@given(ids, st.sampled_from(["", "/roles", "/roles/transitive", "/actions"]))
def test_an_id_with_slashes_stays_one_segment(id: str, rest: str) -> None:
    path = decode_path(f"/management/v1/user/{quote(id, safe='')}{rest}".encode())
    before, segment = path.split("/")[:4], path.split("/")[4]
    assert before == ["", "management", "v1", "user"]
    assert principal_in_path(segment) == id
    assert path == f"/management/v1/user/{segment}{rest}"


@given(ids)
def test_a_member_id_with_slashes_stays_one_segment(id: str) -> None:
    path = decode_path(f"/management/v1/role/r/members/user/{quote(id, safe='')}".encode())
    assert len(path.split("/")) == 8
    assert principal_in_path(path.split("/")[7]) == id


@given(ids)
def test_an_id_is_decoded_once(id: str) -> None:
    twice = quote(quote(id, safe=""), safe="")
    assert decode_path(f"/management/v1/user/{twice}".encode()) == f"/management/v1/user/{quote(id, safe='')}"


@pytest.mark.parametrize(
    "path",
    [
        "/management/v1/user/oidc~a%1Fb",
        "/management/v1/user/oidc~a%00b",
        "/management/v1/user/oidc~a%1Eb",
        "/management/v1/users/oidc~a%5Cb",
        "/management/v1/role/r/member/user/oidc~a%5Cb",
        "/management/v1/warehouse/a%5Cb",
        "/management/v1/user/%2e%2e",
        "/management/v1/user/oidc~a/ro%2Fles",
        "/management/v1//user/oidc~a%2Fb",
        "/management/v1/users/oidc~a%2Fb",
        "/management%2Fv1/user/oidc~a%2Fb",
        "/management/v1/warehouse/a%2Fb",
        "/management/v1/role/a%2Fb/members/user/oidc~a",
        "/management/v1/role/r/members/us%2Fer/oidc~a",
        "/management/v1/role/r/member/user/oidc~a%2Fb",
        "/scim/v2/Users/a%2Fb",
        "/catalog/v1/user/a%2Fb",
    ],
)
def test_a_slash_or_control_character_elsewhere_is_400(path: str) -> None:
    with pytest.raises(BadRequestException):
        decode_path(path.encode())
