# SPDX-License-Identifier: Apache-2.0
"""Lock 3: `@serves` derives the route from the operation, once."""

from __future__ import annotations

import re
from typing import ClassVar

import pytest
from litestar import get

from gateway.access.door.permit import Permit
from gateway.access.operation import OPERATIONS, Audience, PublicAudience, ReadOperation
from gateway.access.operations.namespaces import LoadNamespace
from gateway.access.operations.tables import DropTable, LoadTable
from gateway.access.request import Query
from gateway.api.binding import inputs_of
from gateway.api.context import Ctx
from gateway.api.serves import INPUTS, OPERATIONS_OF, SERVED, _inject_context, serve, serves
from tests.support.door.app import running

pytestmark = pytest.mark.usefixtures("registers")


async def _handler() -> None:
    """Stand for a handler."""


def test_an_operation_is_served_by_one_handler() -> None:
    assert LoadTable in SERVED
    with pytest.raises(TypeError, match="LoadTable has a second handler"):
        serves(LoadTable)(_handler)


def test_operations_of_different_endpoints_do_not_share_a_handler() -> None:
    with pytest.raises(TypeError, match="LoadTable, DropTable do not share one endpoint"):
        serves(LoadTable, DropTable)
    with pytest.raises(TypeError, match="do not share one endpoint"):
        serves(LoadTable, LoadNamespace)


def test_a_refused_handler_is_not_registered() -> None:
    class Fresh(ReadOperation):
        endpoint: ClassVar[str] = LoadTable.endpoint
        open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)

    before = dict(SERVED)
    with pytest.raises(TypeError, match="LoadTable has a second handler"):
        serves(Fresh, LoadTable)(_handler)
    assert before == SERVED


def test_method_path_and_status_come_from_the_operation() -> None:
    for operation, handler in SERVED.items():
        method, path = operation.endpoint.split(" ", 1)
        assert handler.http_methods == {method}
        assert {re.sub(":(str|path)}", "}", each) for each in handler.paths} == {path, *operation.also_at}
        assert operation in handler.opt[OPERATIONS_OF]
    assert SERVED[DropTable].status_code == DropTable.returns == 204


def test_the_set_of_served_operations_is_the_set_of_declared_ones() -> None:
    assert {operation.__name__ for operation in SERVED} == set(OPERATIONS)
    assert all(OPERATIONS[operation.__name__] is operation for operation in SERVED)


def test_operations_that_share_a_handler_are_equally_open() -> None:
    """The latch accepts any of the operations, so none may be public if another is not."""
    for handler in SERVED.values():
        assert len({operation.is_public() for operation in handler.opt[OPERATIONS_OF]}) == 1


async def test_a_handler_reads_only_declared_parts_of_the_request() -> None:
    """`Ctx` refuses to read a query parameter, a header or a body that the handler does not declare."""

    async def curious(ctx: Ctx) -> str:
        requested = {"query": lambda: ctx.query("hidden"), "header": lambda: ctx.header("x-hidden")}
        what = str(ctx.query("what"))
        return str(requested[what]()) if what in requested else "nothing hidden"

    _inject_context(curious)
    declared = {OPERATIONS_OF: frozenset({OPERATIONS["GetHealth"]}), INPUTS: inputs_of((), (Query("what"),))}
    lax = get("/lax", opt=declared)(curious)
    async with running(extra_handlers=[lax]) as app:
        assert (await app.client.get("/lax", params={"what": "else"})).text == "nothing hidden"
        for what in ("query", "header"):
            answer = await app.client.get("/lax", params={"what": what, "hidden": "1"}, headers={"x-hidden": "1"})
            assert (answer.status_code, answer.json()["error"]["type"]) == (500, "InternalServerError")


def test_a_use_case_outside_of_a_class_is_refused() -> None:
    async def orphan(self: object, permit: Permit[LoadTable]) -> None:
        """Stand for a use case that no instance has."""

    with pytest.raises(TypeError, match="no method of a class with use cases"):
        serve(LoadTable, orphan)
