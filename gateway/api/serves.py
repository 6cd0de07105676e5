# SPDX-License-Identifier: Apache-2.0
"""The only ways to a route (lock 3): `serve` from an operation and its use case, `@serves` with a handler."""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from litestar import HttpMethod, route
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler

from gateway.access.operation import HttpOperation
from gateway.access.permit import Permit
from gateway.access.request import Source
from gateway.api.answers import EmptyResponse, answers_nothing
from gateway.api.binding import inputs_of
from gateway.api.idempotency import once
from gateway.api.services import Services

SERVED: dict[type[HttpOperation], HTTPRouteHandler] = {}
"""Which handler serves each operation, filled on import of the handler modules."""

OPERATIONS_OF = "operations"
"""Under this key a handler's options hold the operations it serves, for the latch and the boot-time walk."""

REPEATED_BY = "repeated by"
"""And under this one what makes the answer of a repeated request anew, or None."""

INPUTS = "inputs"
"""And under this one what the handler reads of a request (`gateway.api.binding.Inputs`)."""

Op = TypeVar("Op", bound=HttpOperation)
Again = TypeVar("Again", bound=HttpOperation)
Answer = TypeVar("Answer")

Replay = Callable[..., Awaitable[Any]]
"""Makes the answer of a repeated request anew, from (context, what is remembered)."""


def serve(
    operation: type[Op],
    use_case: Callable[[Any, Permit[Op]], Awaitable[Answer]],
    *,
    replay: Replay | None = None,
) -> HTTPRouteHandler:
    """Make the route of an operation whose use case gives the whole answer.

    `use_case` is a method of a class that `Services` holds one object of; its return annotation is the answer. `replay`
    is as for `serves`. Raises TypeError as `serves` does, and if `Services` has no such object.
    """
    handler = _handler(operation, use_case)
    return serves(operation, replay=replay)(handler)


def replay_by(operation: type[Op], use_case: Callable[[Any, Permit[Op]], Awaitable[Answer]]) -> Replay:
    """Return a replay that answers with the present answer of `operation`, read from the same request."""
    handler = _handler(operation, use_case)

    async def replay(ctx: Any, remembered: object) -> Any:
        return await handler(ctx)

    return replay


def serves(
    *operations: type[HttpOperation], replay: Replay | None = None, reads: tuple[Source, ...] = ()
) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """Make a handler of the endpoint that all `operations` name; the first one gives its name and status.

    Changes heed idempotency keys (`idempotency.py`). When a success is repeated, `replay` makes the answer anew,
    through the door, from the context and the recorded success. Empty answers need none. `reads` are the inputs of the
    handler beside the fields of the operations. Older paths (`also_at`) lead to the same handler.

    Raises TypeError if the operations name different endpoints, if one has no route, or if one is served already.
    """
    first = operations[0]
    if not issubclass(first, HttpOperation):
        raise TypeError(f"{first.__name__} has no route")
    if any(each.endpoint != first.endpoint for each in operations):
        raise TypeError(f"{', '.join(each.__name__ for each in operations)} do not share one endpoint")
    if any(each.also_at != first.also_at for each in operations):
        raise TypeError(f"{', '.join(each.__name__ for each in operations)} do not share their older paths")
    if any(each.heeds_keys() != first.heeds_keys() for each in operations):
        raise TypeError(f"{', '.join(each.__name__ for each in operations)}: some change something, others do not")
    method = first.endpoint.split(" ", 1)[0]

    def wrap(handler: Callable[..., Any]) -> HTTPRouteHandler:
        taken = [each.__name__ for each in operations if each in SERVED]
        if taken:
            raise TypeError(f"{', '.join(taken)} served twice")
        _inject_context(handler)
        served: HTTPRouteHandler = route(
            [re.sub(r"\{(\w+)\}", r"{\1:str}", each) for each in first.paths()],
            http_method=[HttpMethod(method)],
            status_code=first.returns,
            operation_id=first.__name__,
            summary=(first.__doc__ or "").split("\n")[0],
            response_class=EmptyResponse if answers_nothing(handler) else None,
            opt={OPERATIONS_OF: frozenset(operations), REPEATED_BY: replay, INPUTS: inputs_of(operations, reads)},
        )(once(handler, first, replay) if first.heeds_keys() else handler)
        for each in operations:
            SERVED[each] = served
        return served

    return wrap


def _handler(
    operation: type[Op], use_case: Callable[[Any, Permit[Op]], Awaitable[Answer]]
) -> Callable[[Any], Awaitable[Answer]]:
    """Return the handler that reads the operation, has it admitted, and calls the use case with the permit."""
    attribute, method = _attribute_of(use_case), use_case.__name__

    # `Any`: the context's own module imports this one.
    async def handle(ctx: Any) -> Answer:
        permit: Permit[Op] = await ctx.admit(await ctx.read(operation))
        answer: Answer = await getattr(getattr(ctx.services, attribute), method)(permit)
        return answer

    handle.__name__ = operation.name()
    handle.__annotations__ = {"ctx": Any, "return": typing.get_type_hints(use_case)["return"]}
    return handle


def _attribute_of(use_case: Callable[..., Any]) -> str:
    """Return the attribute of `Services` whose class has this method. Raises TypeError if there is none."""
    owner, _, name = use_case.__qualname__.rpartition(".")
    for attribute, kind in _use_cases().items():
        if any(each.__name__ == owner and each.__dict__.get(name) is use_case for each in kind.__mro__):
            return attribute
    raise TypeError(f"no part has the use case {use_case.__qualname__}")


@functools.cache
def _use_cases() -> dict[str, type]:
    return {name: kind for name, kind in typing.get_type_hints(Services).items() if isinstance(kind, type)}


def _inject_context(handler: Callable[..., Any]) -> None:
    """Mark `ctx` as the one injected dependency. Litestar 3 infers it from the name no longer."""
    injected: Any = NamedDependency  # subscribed with what only the run-time knows
    if "ctx" in handler.__annotations__:
        handler.__annotations__["ctx"] = injected[handler.__annotations__["ctx"]]
