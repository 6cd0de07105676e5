# SPDX-License-Identifier: Apache-2.0
"""Lock 4: an application with an undeclared route, or with a declared operation without a handler, does not start."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any, ClassVar

import pytest
from litestar import Controller, HttpMethod, Router, WebSocket, get, route
from litestar.handlers import ASGIRouteHandler, asgi, websocket
from litestar.types import ControllerRouterHandler, Receive, Scope, Send

from gateway.access.operation import Audience, PublicAudience, ReadOperation
from gateway.api.build import UndeclaredRoute, build_api
from gateway.api.services import Services
from tests.support.door.world import Watcher


def _build(*extra: ControllerRouterHandler) -> None:
    async def assemble(stack: AsyncExitStack) -> Services:
        raise AssertionError("an application of these tests must not start")

    build_api(assemble, observer=Watcher(), max_body_bytes=1000, extra_handlers=extra)


@get("/back")
async def _back() -> str:
    return "open"


@route("/management/v1/whoami", http_method=[HttpMethod.DELETE], status_code=204)
async def _second_method() -> None:
    """Serve a second, undeclared method of the path."""


@route("/back", http_method=[HttpMethod.GET, HttpMethod.OPTIONS])
async def _with_options() -> str:
    return "open"


class _BackController(Controller):
    path = "/controller"

    @get()
    async def back(self) -> str:
        return "open"


async def _mounted(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a mounted ASGI application."""


_mount: ASGIRouteHandler = asgi("/mounted", is_mount=True, copy_scope=True)(_mounted)


@websocket("/socket")
async def _socket(socket: WebSocket[Any, Any, Any]) -> None:
    """Serve a WebSocket route."""


@route("/whispered", http_method=[HttpMethod.OPTIONS])
async def _options_only() -> str:
    return "open"


@pytest.mark.threat("LG-DEC-01")
@pytest.mark.parametrize(
    "smuggled",
    [
        _back,
        _second_method,
        _with_options,
        _options_only,
        _BackController,
        Router("/under", route_handlers=[_back]),
        _mount,
        _socket,
    ],
    ids=["route", "method", "with OPTIONS", "OPTIONS only", "controller", "router", "mount", "websocket"],
)
def test_an_undeclared_route_prevents_startup(smuggled: ControllerRouterHandler) -> None:
    with pytest.raises(UndeclaredRoute, match="serves no declared operation"):
        _build(smuggled)


def test_the_unchanged_application_starts() -> None:
    _build()


@pytest.mark.usefixtures("registers")
def test_a_declared_operation_without_a_handler_prevents_startup() -> None:
    class Unserved(ReadOperation):
        endpoint: ClassVar[str] = "GET /unserved"
        open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)

    with pytest.raises(UndeclaredRoute, match="no route serves Unserved"):
        _build()


@pytest.mark.parametrize("declared", [frozenset(), None, "operations"])
def test_handler_options_without_an_operation_prevent_startup(declared: object) -> None:
    @get("/empty", opt={"operations": declared})
    async def empty() -> str:
        return "open"

    with pytest.raises(UndeclaredRoute):
        _build(empty)
