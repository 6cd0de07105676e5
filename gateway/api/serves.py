# SPDX-License-Identifier: Apache-2.0
"""Create the routes of operations: `serve` for an operation with one use case, `@serves` for a handler.

No other code creates routes. This is lock 3 of the mechanisms that make a missing check impossible (`ARCHITECTURE.md`).
"""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from litestar import HttpMethod, route
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler

from gateway.access.door.permit import Permit
from gateway.access.operation import HttpOperation
from gateway.access.request import Source
from gateway.api.answers import EmptyResponse, returns_no_content
from gateway.api.binding import inputs_of, require_named
from gateway.api.idempotency import replay_recorded

SERVED: dict[type[HttpOperation], HTTPRouteHandler] = {}
"""The handler of each operation, filled while the endpoint modules are imported."""

OPERATIONS_OF = "operations"
"""Key in the options of a handler: the operations it serves. The latch and `require_declared` read it."""

REPEATED_BY = "repeated by"
"""Key in the options of a handler: its `Replay`, or None."""

INPUTS = "inputs"
"""Key in the options of a handler: its inputs (`gateway.api.binding.Inputs`)."""

Op = TypeVar("Op", bound=HttpOperation)
Again = TypeVar("Again", bound=HttpOperation)
Answer = TypeVar("Answer")

Replay = Callable[..., Awaitable[Any]]
"""A function from (context, recorded success) to the response of a retried request."""


def serve(
    operation: type[Op],
    use_case: Callable[[Any, Permit[Op]], Awaitable[Answer]],
    *,
    replay: Replay | None = None,
) -> HTTPRouteHandler:
    """Create the route of an operation whose use case returns the body of the response.

    `use_case` is a method of a class whose constructor takes the kit. Its return annotation is the type of the body.
    `replay` is as in `serves`. Raises the TypeErrors of `serves`, and TypeError for a function that is not a method.
    """
    handler = _handler(operation, use_case)
    return serves(operation, replay=replay)(handler)


def replay_by(operation: type[Op], use_case: Callable[[Any, Permit[Op]], Awaitable[Answer]]) -> Replay:
    """Return a replay function. It reads `operation` from the same request, admits it, and returns the result of
    `use_case`.
    """
    handler = _handler(operation, use_case)

    async def replay(ctx: Any, recorded_success: object) -> Any:
        return await handler(ctx)

    return replay


def serves(
    *operations: type[HttpOperation], replay: Replay | None = None, reads: tuple[Source, ...] = ()
) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """Return a decorator that makes a function the handler of the endpoint of all `operations`.

    The first operation determines the name of the endpoint and its status. Handlers of changes support idempotency keys
    (`idempotency.py`): for a retry after a success, `replay` builds the response from the context and the recorded
    success, with a new decision. Empty responses need no `replay`. `reads` are the inputs of the handler beside the
    fields of the operations. Older paths (`also_at`) have the same handler.

    Raises TypeError if an operation has no endpoint or is served already, if a field reads a parameter that its path
    does not have, or if the operations differ in endpoint, older paths or support of idempotency keys.
    """
    first = operations[0]
    if not issubclass(first, HttpOperation):
        raise TypeError(f"{first.__name__} has no route")
    if any(each.endpoint != first.endpoint for each in operations):
        raise TypeError(f"{', '.join(each.__name__ for each in operations)} do not share one endpoint")
    if any(each.also_at != first.also_at for each in operations):
        raise TypeError(f"{', '.join(each.__name__ for each in operations)} do not share their older paths")
    if any(each.uses_idempotency_keys() != first.uses_idempotency_keys() for each in operations):
        raise TypeError(
            f"{', '.join(each.__name__ for each in operations)} must either all use idempotency keys, or none"
        )
    for each in operations:
        require_named(each)
    method = first.endpoint.split(" ", 1)[0]

    def wrap(handler: Callable[..., Any]) -> HTTPRouteHandler:
        taken = [each.__name__ for each in operations if each in SERVED]
        if taken:
            raise TypeError(f"{', '.join(taken)} has a second handler; only one is allowed")
        _inject_context(handler)
        served: HTTPRouteHandler = route(
            [_litestar_path(each) for each in first.paths()],
            http_method=[HttpMethod(method)],
            status_code=first.returns,
            operation_id=first.__name__,
            summary=(first.__doc__ or "").split("\n")[0],
            response_class=EmptyResponse if returns_no_content(handler) else None,
            opt={OPERATIONS_OF: frozenset(operations), REPEATED_BY: replay, INPUTS: inputs_of(operations, reads)},
        )(replay_recorded(handler, first, replay) if first.uses_idempotency_keys() else handler)
        for each in operations:
            SERVED[each] = served
        return served

    return wrap


def _litestar_path(path: str) -> str:
    """Return the path of a route for Litestar. Only the parameter `file_path` takes several segments."""
    return re.sub(r"\{(\w+)\}", lambda name: f"{{{name[1]}:{'path' if name[1] == 'file_path' else 'str'}}}", path)


def _handler(
    operation: type[Op], use_case: Callable[[Any, Permit[Op]], Awaitable[Answer]]
) -> Callable[[Any], Awaitable[Answer]]:
    """Return a handler that reads the operation from the request, admits it, and calls the use case with the permit."""
    kind, method = _class_of(use_case), use_case.__name__

    # `Any`, because the module that defines `Ctx` imports this module.
    async def handle(ctx: Any) -> Answer:
        permit: Permit[Op] = await ctx.admit(await ctx.read(operation))
        answer: Answer = await getattr(ctx.use(kind), method)(permit)
        return answer

    handle.__name__ = operation.name()
    handle.__annotations__ = {"ctx": Any, "return": typing.get_type_hints(use_case)["return"]}
    return handle


def _class_of(use_case: Callable[..., Any]) -> type[Any]:
    """Return the class that defines this method. Raises TypeError for a function outside of a class."""
    owner, _, _ = use_case.__qualname__.rpartition(".")
    kind = getattr(sys.modules[use_case.__module__], owner, None) if owner else None
    if not isinstance(kind, type):
        raise TypeError(f"{use_case.__qualname__} is no method of a class with use cases")
    return kind


def _inject_context(handler: Callable[..., Any]) -> None:
    """Mark the parameter `ctx` as an injected dependency. Litestar 3 does not infer that from its name."""
    injected: Any = NamedDependency  # `Any`, because the subscript is a run-time value
    if "ctx" in handler.__annotations__:
        handler.__annotations__["ctx"] = injected[handler.__annotations__["ctx"]]
