# SPDX-License-Identifier: Apache-2.0
"""Cross-origin requests: only configured origins, never credentials of the browser."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.api.cors import Cors

PAGE = b"https://console.example.com"


async def _answer(
    origins: tuple[str, ...], method: str = "GET", **headers: bytes
) -> tuple[int, dict[bytes, list[bytes]], bool]:
    """Return (status, headers, whether the application was called)."""
    messages: list[Any] = []
    called = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        called.append(True)
        await send({"type": "http.response.start", "status": 401, "headers": [(b"vary", b"Authorization")]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send(message: Any) -> None:
        messages.append(message)

    given = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    scope: Any = {"type": "http", "method": method, "path": "/", "headers": given}
    await Cors(app, origins)(scope, None, send)  # type: ignore[arg-type]
    found: dict[bytes, list[bytes]] = {}
    for name, value in messages[0]["headers"]:
        found.setdefault(name, []).append(value)
    return messages[0]["status"], found, bool(called)


@pytest.mark.parametrize("origins", [("https://console.example.com",), ("https://a.b", "https://console.example.com")])
async def test_an_allowed_page_can_read_every_answer(origins: tuple[str, ...]) -> None:
    status, headers, called = await _answer(origins, origin=PAGE)
    assert (status, called) == (401, True)
    assert headers[b"access-control-allow-origin"] == [PAGE]
    assert headers[b"vary"] == [b"Authorization", b"Origin"]
    assert headers[b"access-control-expose-headers"] == [b"*"], "the page reads ETag and the id of the request"


async def test_an_answer_to_no_page_differs_for_caches_from_that_to_a_page() -> None:
    _, headers, _ = await _answer((PAGE.decode(),))
    assert headers == {b"vary": [b"Authorization", b"Origin"]}


@pytest.mark.parametrize(
    ("method", "given"),
    [("OPTIONS", {}), ("DELETE", {"access_control_request_method": b"GET"})],
    ids=["OPTIONS of another kind", "the header alone"],
)
async def test_only_a_preflight_request_is_answered_without_the_application(
    method: str, given: dict[str, bytes]
) -> None:
    status, headers, called = await _answer((PAGE.decode(),), method, origin=PAGE, **given)
    assert (status, called) == (401, True)
    assert headers[b"access-control-allow-origin"] == [PAGE]


async def test_preflight_repeats_a_limited_number_of_header_names_and_varies_by_them() -> None:
    _, headers, _ = await _answer(
        (PAGE.decode(),),
        "OPTIONS",
        origin=PAGE,
        access_control_request_method=b"GET",
        access_control_request_headers=b"a," * 10_000,
    )
    assert 0 < len(headers[b"access-control-allow-headers"][0]) < 4096
    assert b"Access-Control-Request-Headers" in headers[b"vary"]


@pytest.mark.parametrize(
    "origin",
    [
        b"https://console.example.com.evil.org",
        b"http://console.example.com",
        b"https://console.example.com:444",
        b"null",
    ],
)
async def test_another_page_gets_no_permission(origin: bytes) -> None:
    for method in ("GET", "OPTIONS"):
        _, headers, called = await _answer(
            (PAGE.decode(),), method, origin=origin, access_control_request_method=b"GET"
        )
        assert called
        assert not any(name.startswith(b"access-control-") for name in headers)
        assert b"Origin" in headers[b"vary"]


async def test_preflight_of_an_allowed_page_allows_its_headers_and_needs_no_token() -> None:
    status, headers, called = await _answer(
        (PAGE.decode(),),
        "OPTIONS",
        origin=PAGE,
        access_control_request_method=b"DELETE",
        access_control_request_headers=b"authorization,x-project-id, bad\r\nname",
    )
    assert (status, called) == (204, False)
    assert headers[b"access-control-allow-headers"] == [b"authorization, x-project-id"]
    assert b"DELETE" in headers[b"access-control-allow-methods"][0]
    assert b"content-length" not in headers


@pytest.mark.threat("LG-DIS-24")
async def test_no_answer_allows_credentials_of_the_browser() -> None:
    for origins in (("*",), (PAGE.decode(),)):
        for method in ("GET", "OPTIONS"):
            _, headers, _ = await _answer(
                origins, method, origin=PAGE, access_control_request_method=b"GET", cookie=b"a=b"
            )
            assert headers[b"access-control-allow-origin"] == [b"*" if origins == ("*",) else PAGE]
            assert b"access-control-allow-credentials" not in headers
