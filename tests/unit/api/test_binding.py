# SPDX-License-Identifier: Apache-2.0
"""Binding of operation fields to the request by their markers; unreadable values are refused."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

import httpx
import pytest
from litestar import post

from gateway.access.nouns.refs import TableRef, WarehouseRef
from gateway.access.nouns.role import RoleRef
from gateway.access.operation import OPERATIONS, Audience, PublicAudience, QuestionOperation
from gateway.access.request import Body, Header, InBody, InPath, OfRequest, PageSize, PageToken, Path, Query
from gateway.api.binding import bind, inputs_of, require_named
from gateway.api.context import Ctx
from gateway.api.serves import INPUTS, OPERATIONS_OF, _inject_context
from gateway.iceberg.wire import RenameRequest
from tests.support.door.app import running

_ROLE = "01a1fe72-4e99-725d-80d8-8afc12f93d6e"
_WAREHOUSE = "01a1fe72-4e99-725d-80d8-8afc12f93d6f"
_RENAME = {
    "source": {"namespace": ["sales"], "name": "orders"},
    "destination": {"namespace": ["sales", "old"], "name": "orders"},
}


class Shade(StrEnum):
    """Values of a query parameter."""

    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True)
class Everything(QuestionOperation, abstract=True):
    """An operation with one field for each marker and type."""

    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.AUTHENTICATED, "a test")
    role: InPath[RoleRef]
    member: Annotated[str, Path("member_id")]
    project: OfRequest
    source: Annotated[TableRef, Body(RenameRequest, "source.identifier")]
    request: InBody[RenameRequest]
    page_token: PageToken = None
    page_size: PageSize = None
    force: Annotated[bool, Query("force")] = True
    purge: Annotated[bool | None, Query("purgeRequested")] = None
    ids: Annotated[tuple[UUID, ...], Query("roleIds")] = ()
    words: Annotated[tuple[str, ...], Query("words")] = ()
    shade: Annotated[Shade | None, Query("shade")] = None
    attempts: Annotated[int, Query("numAttempts", max_value=1000)] = 5
    version: Annotated[str | None, Header("if-match")] = None
    given: str = "by the handler"


async def _send(path: str, **more: Any) -> httpx.Response:
    """Send a request to a route that returns the fields it read, as text."""

    async def show(ctx: Ctx) -> dict[str, str]:
        found = await ctx.read(Everything, given="here")
        return {name: str(value) for name, value in asdict(found).items() if name != "request"}

    _inject_context(show)
    # Any public operation opens the latch; this handler admits nothing.
    options = {OPERATIONS_OF: frozenset({OPERATIONS["GetHealth"]}), INPUTS: inputs_of((Everything,))}
    route = post("/{prefix:str}/{role_id:str}/{member_id:str}", status_code=200, opt=options)(show)
    async with running(extra_handlers=[route]) as app:
        return await app.client.post(path, json=_RENAME, **more)


async def _read(query: str = "", **headers: str) -> dict[str, str]:
    answer = await _send(f"/{_WAREHOUSE}/{_ROLE}/bob?{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, str] = answer.json()
    return found


async def _refusal(query: str = "", role: str = _ROLE, prefix: str = _WAREHOUSE) -> str:
    answer = await _send(f"/{prefix}/{role}/bob?{query}")
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"]["message"])


async def test_fields_without_a_value_keep_their_defaults() -> None:
    found = await _read("projectId=p")
    assert (found["page_token"], found["page_size"], found["force"], found["purge"]) == ("None", "None", "True", "None")
    assert (found["ids"], found["shade"], found["attempts"], found["version"]) == ("()", "None", "5", "None")
    assert (found["member"], found["given"]) == ("bob", "here")
    assert _ROLE in found["role"]


async def test_every_marker_reads_its_part_of_the_request() -> None:
    query = (
        f"project-id=p&pageToken=t&pageSize=7&force=FALSE&purgeRequested=false&roleIds={_ROLE},{_ROLE}&words=a,b&words=c"
        "&shade=dark&numAttempts=2000"
    )
    found = await _read(query, **{"if-match": 'W/"1"'})
    assert (found["page_token"], found["page_size"], found["force"], found["purge"]) == ("t", "7", "False", "False")
    assert found["ids"].count(_ROLE) == 2
    assert found["words"] == "('a', 'b', 'c')"
    assert (found["shade"], found["attempts"], found["version"]) == ("dark", "1000", 'W/"1"')
    assert "'p'" in found["project"]


async def test_a_reference_by_name_in_a_body_gets_the_warehouse_of_the_path() -> None:
    source = (await _read("projectId=p"))["source"]
    assert _WAREHOUSE in source
    assert "orders" in source


async def test_a_page_token_without_a_size_gets_the_largest_page() -> None:
    assert int((await _read("projectId=p&pageToken=t"))["page_size"]) >= 100


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("force=yes", "The query parameter force must be true or false, not 'yes'."),
        ("force=true&force=true", "The query parameter force is given 2 times; give it once."),
        ("roleIds=x", "Each value of roleIds must be a UUID."),
        ("shade=grey", "shade must be light or dark, not 'grey'."),
        ("numAttempts=-1", "numAttempts must be a whole number of at most 5 digits, not '-1'."),
        ("pageSize=0", "pageSize must be a positive whole number, not '0'."),
        ("projectId=other", "The header x-project-id, query and body must name the same project."),
    ],
)
async def test_values_that_cannot_be_read_are_refused(query: str, message: str) -> None:
    assert await _refusal(f"project-id=p&{query}") == message


async def test_ids_of_a_path_are_uuids() -> None:
    assert await _refusal(role="x") == "role_id in the path must be a UUID."
    assert (
        await _refusal("projectId=p", prefix="x")
        == "The prefix in the path must be the UUID of a warehouse, as GET /v1/config returns it."
    )


def test_field_that_its_path_does_not_name_is_refused_when_it_is_served() -> None:
    @dataclass(frozen=True)
    class Misspelled(QuestionOperation, abstract=True):
        endpoint: ClassVar[str] = "GET /management/v1/warehouse/{id}"
        on: InPath[WarehouseRef]

    @dataclass(frozen=True)
    class Spelled(Misspelled, abstract=True):
        endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}"

    with pytest.raises(TypeError, match="Misspelled.on: .*{id} has no parameter 'warehouse_id'"):
        require_named(Misspelled)
    require_named(Spelled)


def test_a_field_that_no_path_can_name_is_refused_when_it_is_declared() -> None:
    @dataclass(frozen=True)
    class Odd(QuestionOperation, abstract=True):
        on: InPath[float]

    with pytest.raises(TypeError, match="Odd.on: a path parameter cannot have the type <class 'float'>"):
        bind(Odd)


def test_the_documented_inputs_follow_the_markers() -> None:
    found: Any = inputs_of((Everything,), (Header("x-more"),))
    assert found.body is RenameRequest
    assert found.query["force"] == "boolean"
    assert found.query["pageSize"] == "integer"
    assert found.headers == ("x-project-id", "if-match", "x-more")
