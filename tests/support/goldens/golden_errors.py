# SPDX-License-Identifier: Apache-2.0
"""Render the errors that clients see: each type with its answer, the texts that clients match, the door's answers."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, MutableMapping
from typing import Any, cast
from unittest.mock import patch

import httpx

from gateway.access.decisions.policy import PolicyAnswer, PolicyRequest
from gateway.access.dependency_errors import (
    AuditUnavailable,
    CommitUnknown,
    DatabaseUnavailable,
    DecisionEngineUnavailable,
    OutOfTime,
)
from gateway.access.nouns.cards import VISIBLE_BY
from gateway.access.nouns.refs import ObjectType
from gateway.access.ports import Question
from gateway.api.errors import send_error
from gateway.iceberg.errors import CatalogError
from gateway.scim.errors import ScimError
from tests.support.door.app import Reached, Running, running
from tests.support.door.examples import EXAMPLES, Example
from tests.support.door.world import DENIED, DoorFixture
from tests.support.goldens.golden_source import modules
from tests.support.runs.golden_files import table

_HEAD = """\
# Errors

The errors that clients see. A golden file: see "Golden files" in ARCHITECTURE.md. All messages are in
`error-messages.md`.

## Types

`text` is the message of a type that has a single one. `form` is the form of the body: the catalog's has the type and
the status, that of SCIM a `scimType`, that of OAuth an `error`. Every answer has `Cache-Control: no-store`.

"""

_NAMED = """
## Texts that clients match

The named constructors of error types. Clients and the protocol's compatibility kit compare these texts.

"""

_DOOR = """
## Answers to refused requests

What a running gateway answers. Each situation is tried with an operation on each type of object, or with operations
that read and that change something, of the catalog and of the management API.

"""

_HEADERS = ("retry-after", "www-authenticate", "connection")
_ERROR_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")

#: (situation, example that is sent, response)
_Answer = tuple[str, Example, httpx.Response]


class Placeholder(str):
    """A placeholder for the value of a parameter: its name in braces."""

    @property
    def dotted(self) -> str:
        """Return the placeholder of a namespace or an identifier."""
        return self


async def render() -> str:
    """Return the tables."""
    modules()  # Error types are known once their modules are imported.
    classes = sorted(_subclasses(CatalogError), key=lambda each: (each.type, each.code))
    rows = sorted({tuple(await _type(each)) for each in classes})
    return "".join(
        (
            _HEAD,
            table(("type", "status", "form", "headers", "text"), rows),
            _NAMED,
            table(("type", "status", "text"), sorted(set(_named(classes)))),
            _DOOR,
            table(
                ("situation", "operation", "status", "type", "headers", "message"), [row async for row in _refusals()]
            ),
        )
    )


def _subclasses(kind: type[CatalogError]) -> set[type[CatalogError]]:
    """Return the error types of the product. Names with a leading underscore are never sent."""
    found = {each for direct in kind.__subclasses__() for each in (direct, *_subclasses(direct))}
    return {each for each in found if each.__module__.startswith("gateway.") and not each.type.startswith("_")}


async def _type(kind: type[CatalogError]) -> list[str]:
    """Return the line of a type with its response."""
    error = cast(CatalogError, _called(kind, str))
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    path = "/scim/v2/Users" if issubclass(kind, ScimError) else "/catalog/v1/config"
    await send_error(cast(Any, {"path": path, "method": "GET"}), cast(Any, send), error)
    response = httpx.Response(sent[0]["status"], headers=sent[0]["headers"], content=sent[1]["body"])
    assert response.headers["cache-control"] == "no-store"
    text = "" if re.fullmatch(r"\{\w+\}", error.message) else error.message
    return [
        kind.type,
        str(response.status_code),
        _form(kind, json.loads(response.content)),
        _response_headers(response),
        text,
    ]


def _form(kind: type[CatalogError], body: dict[str, Any]) -> str:
    """Return the format of a response body. Raise AssertionError if the catalog's body lacks type or status."""
    if "schemas" in body:
        return f"SCIM {body.get('scimType', '')}".strip()
    if "error_description" in body:
        return f"OAuth {body['error']}"
    assert (body["error"]["type"], body["error"]["code"]) == (kind.type, kind.code)
    return "catalog"


def _response_headers(response: httpx.Response) -> str:
    return ", ".join(f"{name}: {response.headers[name]}" for name in _HEADERS if name in response.headers)


def _named(classes: Iterable[type[CatalogError]]) -> Iterator[tuple[str, str, str]]:
    for kind in classes:
        for name, made in vars(kind).items():
            if isinstance(made, classmethod) and not name.startswith("_"):
                yield kind.type, str(kind.code), _called(getattr(kind, name), Placeholder).message


def _called(made_by: Callable[..., Any], text: type[str]) -> Any:
    """Return the result of a class or constructor for its parameters' names in braces, without those with a default."""
    required = [each for each in inspect.signature(made_by).parameters.values() if each.default is each.empty]
    return made_by(**{each.name: text(f"{{{each.name}}}") for each in required})


async def _refusals() -> AsyncIterator[list[str]]:
    """Yield the line of each refused request."""
    async for situation, example, response in _tried():
        error = response.json()["error"]
        message = _ERROR_ID.sub("…", error["message"])
        yield [
            situation,
            example.operation.name(),
            str(response.status_code),
            error["type"],
            _response_headers(response),
            message,
        ]


async def _tried() -> AsyncIterator[_Answer]:
    async with running() as app:
        for situations in (_by_decision, _by_outage, _by_failure, _by_request):
            async for answer in situations(app):
                yield answer
    async with running(DoorFixture(read_only=True)) as app:
        lost = next(each for each in EXAMPLES if getattr(each.operation, "refused_for_good", ""))
        for each in (*_some(changes=True), lost):
            yield "read-only maintenance", each, await app.send(each)


async def _by_decision(app: Running) -> AsyncIterator[_Answer]:
    """Send requests that the door refuses: one for each object type."""
    door_fixture = app.door_fixture
    each_type = [example for type in ObjectType for example in _examples(type)[:1]]
    yield "no token", each_type[0], await app.send(each_type[0], subject=None)
    basic = await app.send(each_type[0], subject=None, authorization="Basic YTpi")
    yield "unknown scheme", each_type[0], basic
    with patch.object(door_fixture.judge, "answer", lambda question: False):
        for each in each_type:
            yield "absent or invisible", each, await app.send(each)
    with patch.object(
        door_fixture.judge, "answer", lambda question: question.relation is VISIBLE_BY.get(question.object.type)
    ):
        for each in (example for type in ObjectType for example in _examples(type, more_than_visible=True)[:1]):
            yield "visible, not allowed", each, await app.send(each)
    with patch.object(door_fixture.rules, "answer", DENIED):
        for each in each_type:
            yield "refused by a policy", each, await app.send(each)


async def _by_outage(app: Running) -> AsyncIterator[_Answer]:
    """Send requests while a decision engine or the audit is down."""

    def no_answer(question: Question) -> bool:
        raise DecisionEngineUnavailable("down")

    async def no_decision(request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        raise DecisionEngineUnavailable("down")

    both = (*_some(changes=False), *_some(changes=True))
    with patch.object(app.door_fixture.judge, "answer", no_answer):
        for each in both:
            yield "OpenFGA is down", each, await app.send(each)
    with patch.object(app.door_fixture.rules, "decide", no_decision):
        for each in both:
            yield "OPA is down", each, await app.send(each)
    with patch.object(app.door_fixture.audit, "full", True):
        for each in _some(changes=False):
            yield "the audit is down", each, await app.send(each)


async def _by_failure(app: Running) -> AsyncIterator[_Answer]:
    """Send requests whose use case fails."""
    failures = {
        "the outcome of COMMIT is unknown": CommitUnknown("unknown"),
        "the database is down": DatabaseUnavailable("down"),
        "the audit of a change is down": AuditUnavailable("down"),
        "out of time": OutOfTime("late"),
        "a fault": Reached(),
    }
    for situation, failure in failures.items():
        with patch.object(app.spy, "failure", failure):
            for each in (*_some(changes=False), *_some(changes=True)):
                yield situation, each, await app.send(each)


async def _by_request(app: Running) -> AsyncIterator[_Answer]:
    """Send requests that are invalid by themselves."""
    (create,) = (each for each in EXAMPLES if each.label == "create table")
    headers = {"authorization": "Bearer alice", "content-type": "application/json"}
    yield "no such endpoint", create, await app.client.get("/catalog/v1/nothing", headers=headers)
    yield "no such method", create, await app.client.patch(create.url, headers=headers)
    for situation, body in {
        "no body": b"",
        "malformed body": b"{",
        "wrong type in the body": b"{}",
        "body too large": b" " * 1_000_001,
    }.items():
        yield situation, create, await app.client.post(create.url, headers=headers, content=body)
    elsewhere = create.url.replace(create.path["prefix"], "pond")
    yield "name of no warehouse as prefix", create, await app.client.post(elsewhere, headers=headers, json=create.body)
    elsewhere = create.url.replace(create.path["prefix"], "l" * 129)
    yield "prefix that is no warehouse id", create, await app.client.post(elsewhere, headers=headers, json=create.body)
    key = {**headers, "idempotency-key": "not a key"}
    yield "malformed idempotency key", create, await app.client.post(create.url, headers=key, json=create.body)


def _examples(type: ObjectType, *, more_than_visible: bool = False) -> list[Example]:
    """Return requests for an object of a type, in the error format of the catalog or of the management API."""
    return [
        each
        for each in EXAMPLES
        if each.about is type
        and each.method != "HEAD"
        and not each.url.startswith("/scim/")
        and not each.operation.parts()
        and any(
            demand.required and (not more_than_visible or demand.relation is not VISIBLE_BY.get(demand.on.type))
            for demand in each.operation.demands()
        )
    ]


def _some(*, changes: bool) -> list[Example]:
    """Return a request of the catalog and one of the management API."""
    types = (ObjectType.NAMESPACE, ObjectType.ROLE)
    return [next(each for each in _examples(type) if each.operation.changes() is changes) for type in types]
