# SPDX-License-Identifier: Apache-2.0
"""Build the application from the handlers.

The application does not start if a route declares no operation. This is lock 4 of the mechanisms that make a missing
check impossible (`ARCHITECTURE.md`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

from litestar import Litestar
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, ControllerRouterHandler

from gateway.access.operation import OPERATIONS, HttpOperation
from gateway.api.cors import Cors
from gateway.api.early_refusal import EarlyRefusal
from gateway.api.entry import provide_ctx
from gateway.api.latch import Latch, RequestObserver
from gateway.api.raw_path import RawPath
from gateway.api.refused_logins import answer_and_count
from gateway.api.serves import OPERATIONS_OF, SERVED
from gateway.api.services import Services
from gateway.telemetry.calls import Calls


class UndeclaredRoute(Exception):
    """A route without a declared operation, or an operation without a route."""


Application: TypeAlias = ASGIApp
"""The ASGI application that the server runs."""


def build_api(
    assemble: Callable[[AsyncExitStack], Awaitable[Services]],
    *,
    observer: RequestObserver,
    max_body_bytes: int,
    max_seconds: float | None = None,
    max_silence: float | None = None,
    calls: Calls | None = None,
    compress: bool = False,
    allowed_origins: tuple[str, ...] = (),
    extra_handlers: Sequence[ControllerRouterHandler] = (),
) -> tuple[Application, Litestar]:
    """Return (ASGI application, Litestar application inside it). Raises UndeclaredRoute.

    It serves the routes of all modules that were imported before (`gateway.features.all_routes`).

    `assemble` creates the services in the running event loop and registers their cleanup on the stack. `max_body_bytes`
    limits request bodies. `max_seconds`, `max_silence`, `observer`, `calls` and `compress` are parameters of `Latch`.
    `allowed_origins` are the origins for `Cors`, which is left out if there are none. `extra_handlers` is for tests of
    `require_declared`.
    """

    @asynccontextmanager
    async def running(app: Litestar) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.services = await assemble(stack)
            yield

    app = Litestar(
        route_handlers=[*dict.fromkeys(SERVED.values()), *extra_handlers],
        dependencies={"ctx": Provide(provide_ctx)},
        middleware=[Latch(observer, max_seconds=max_seconds, max_silence=max_silence, calls=calls, compress=compress)],
        exception_handlers={HTTPException: answer_and_count, Exception: answer_and_count},
        lifespan=[running],
        request_max_body_size=max_body_bytes,
        openapi_config=None,
        logging_config=None,
    )
    require_declared(app)
    raw = RawPath(app, EarlyRefusal(app).of)
    return Cors(raw, allowed_origins) if allowed_origins else raw, app


def require_declared(app: Litestar) -> None:
    """Raise UndeclaredRoute unless each route serves declared operations and each declared operation has a route."""
    for each in app.routes:
        for handler in _handlers(each):
            if not (_declares(handler) or _is_litestars_own(handler)):
                raise UndeclaredRoute(f"{each.path} serves no declared operation")
    unserved = sorted(set(OPERATIONS) - {operation.__name__ for operation in SERVED})
    if unserved:
        raise UndeclaredRoute(f"no route serves {', '.join(unserved)}")


def _declares(handler: Any) -> bool:
    """Return True for an HTTP handler that declares at least one operation. Other handlers are rejected, because the
    latch sees only HTTP.
    """
    operations = handler.opt.get(OPERATIONS_OF)
    return (
        isinstance(handler, HTTPRouteHandler)
        and isinstance(operations, frozenset)
        and bool(operations)
        and all(isinstance(each, type) and issubclass(each, HttpOperation) for each in operations)
    )


def _is_litestars_own(handler: Any) -> bool:
    """Return True for the OPTIONS handler that Litestar adds to each path. The check uses the module of its function,
    because any handler can declare the method OPTIONS.
    """
    return isinstance(handler, HTTPRouteHandler) and handler.fn.__module__ == "litestar.routes.http"


def _handlers(route: Any) -> list[Any]:
    return list(getattr(route, "route_handlers", None) or [route.route_handler])
