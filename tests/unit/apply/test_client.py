# SPDX-License-Identifier: Apache-2.0
"""The client of apply: retries with one idempotency key, pages, and errors with a remedy."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import pytest

from gateway.apply.client import Api, ApiError, segment

Handler = Callable[[httpx2.Request], httpx2.Response]


def _api(handler: Handler) -> Api:
    return Api("http://gateway/", "secret-token", transport=httpx2.MockTransport(handler))


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the waits between attempts instead of sleeping."""
    found: list[float] = []
    monkeypatch.setattr("time.sleep", found.append)
    return found


def test_a_change_is_repeated_with_the_same_idempotency_key(waits: list[float]) -> None:
    """With another key, a change whose answer was lost would be made twice."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        if len(seen) < 3:
            return httpx2.Response(503, headers={"retry-after": "2"})
        return httpx2.Response(201, json={"project-id": "shop"})

    assert _api(answer).change("POST", "/management/v1/project", {"project-name": "Shop"}, project="p") == {
        "project-id": "shop"
    }
    assert len({each.headers["idempotency-key"] for each in seen}) == 1
    assert {each.headers["x-project-id"] for each in seen} == {"p"}
    assert waits == [2.0, 2.0]


def test_retries_end_and_long_waits_are_shortened(waits: list[float]) -> None:
    with pytest.raises(ApiError, match="was answered with 429"):
        _api(lambda request: httpx2.Response(429, headers={"retry-after": "3600"})).get("/management/v1/whoami")
    assert waits == [5.0] * 4


def test_all_pages_of_a_list_are_read() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        token = request.url.params.get("pageToken")
        return httpx2.Response(200, json={"roles": [token], **({} if token else {"next-page-token": "2"})})

    assert list(_api(answer).pages("/management/v1/role", "roles")) == [None, "2"]


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "Log in again with `lakegate login`"),
        (403, "run the command as a user who has it"),
    ],
)
def test_an_error_names_the_request_the_message_and_the_remedy(status: int, remedy: str) -> None:
    body = {"error": {"type": "WarehouseActionForbidden", "message": "You lack it.", "code": status}}
    with pytest.raises(ApiError) as refused:
        _api(lambda request: httpx2.Response(status, json=body)).get("/management/v1/warehouse")
    text = str(refused.value)
    assert f"GET /management/v1/warehouse was answered with {status}: WarehouseActionForbidden: You lack it." in text
    assert remedy in text
    assert "secret-token" not in text


def test_an_answer_of_another_server_and_no_answer_are_explained() -> None:
    with pytest.raises(ApiError, match="not one of the gateway. Check the address"):
        _api(lambda request: httpx2.Response(502, text="<html>")).get("/management/v1/whoami")
    with pytest.raises(ApiError, match="not one of the gateway. Check the address"):
        _api(lambda request: httpx2.Response(200, text="<html>")).get("/management/v1/whoami")

    def fail(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("connection refused")

    with pytest.raises(ApiError, match=r"whoami got no answer: connection refused\. Check that the gateway runs"):
        _api(fail).find("/management/v1/whoami")


@pytest.mark.parametrize("name", [".", "..", "a/../b", "...", "a b", "é"])
def test_a_name_is_always_one_segment_of_the_path(name: str) -> None:
    """The HTTP client resolves dots: grants on a column `..` were written to its table."""
    seen: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.url.raw_path)
        return httpx2.Response(200, json={})

    _api(answer).change("POST", f"/management/v1/table/t/columns/{segment(name)}/grants")
    [path] = seen
    assert path.startswith(b"/management/v1/table/t/columns/")
    assert path.count(b"/") == 7 and path.endswith(b"/grants")


def test_a_redirected_change_is_not_reported_as_made() -> None:
    with pytest.raises(ApiError, match="was answered with 302"):
        _api(lambda request: httpx2.Response(302, headers={"location": "/login"})).change("POST", "/management/v1/role")


def test_the_reasons_of_a_failed_storage_check_are_shown() -> None:
    """The message names only the checks. Without the reasons, the user cannot correct the storage."""
    error = {"type": "StorageValidationFailed", "message": "Failed: a", "stack": ["a: no such bucket", "Error ID: 1"]}
    with pytest.raises(ApiError) as refused:
        _api(lambda request: httpx2.Response(400, json={"error": error})).change("POST", "/management/v1/warehouse", {})
    assert str(refused.value).endswith("StorageValidationFailed: Failed: a\n  a: no such bucket.\n  Error id: 1")


def test_an_error_without_a_full_stop_is_separate_from_its_remedy() -> None:
    body = {"error": {"type": "AuthenticationFailed", "message": "the token has expired"}}
    with pytest.raises(ApiError, match=r"the token has expired\. Log in again"):
        _api(lambda request: httpx2.Response(401, json=body)).get("/management/v1/whoami")
