# SPDX-License-Identifier: Apache-2.0
"""Build responses with an entity tag (RFC 9110 section 8.8.3), and responses without content."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any, TypeAlias, TypeVar

from litestar import Response
from litestar.response.base import ASGIResponse
from msgspec import Struct

from gateway.access.results import Restricts, Stated, Tagged
from gateway.iceberg.wire import CommitTableResponse, LoadTableResult

Body = TypeVar("Body", bound=Struct)

TableAnswer: TypeAlias = Response[LoadTableResult | None]
"""A table's metadata and credentials, or status 304 without a body."""

CommitAnswer: TypeAlias = Response[CommitTableResponse]
"""The metadata after a commit."""

#: Responses at one URL differ by caller, assumed role and requested delegation.
_VARY = "Authorization, X-Assume-Role, X-Iceberg-Access-Delegation"
_PRIVATE = "private, no-cache"


def tagged(body: Body, etag: str) -> Response[Body]:
    """Return a response with this body and entity tag."""
    return Response(body, headers=_headers(etag))


def cached_response(answer: Tagged) -> TableAnswer:
    """Return the response with the body of `answer`. Without a body, return 304, because the client has it. An empty
    tag sets no `ETag` header.
    """
    if answer.body is None:
        return Response(None, status_code=304, headers=_headers(answer.etag))
    return Response(answer.body, headers=_headers(answer.etag))


def cached_file(content: bytes, etag: str, media_type: str, known: Collection[str] | None) -> Response[bytes | None]:
    """Return a file. If its tag is in `known`, the tags of the client (None: any tag), return 304."""
    if known is None or etag in {tag.removeprefix("W/") for tag in known}:
        return Response(None, status_code=304, headers=_headers(etag))
    return Response(content, media_type=media_type, headers=_headers(etag))


def _headers(etag: str) -> dict[str, str]:
    return {"Cache-Control": _PRIVATE, "Vary": _VARY, **({"ETag": etag} if etag else {})}


class EmptyResponse(Response[None]):
    """Response with an empty body. By default Litestar sends the four bytes `null` with status 200.

    Handlers have the return annotation `Response[None]` if the response has headers of its own, otherwise None.
    """

    def render(self, content: Any, media_type: str, enc_hook: Any = None) -> bytes:
        """Return no bytes."""
        return b""

    def to_asgi_response(self, *arguments: Any, **options: Any) -> ASGIResponse:
        """Build the response without a content type."""
        answer = super().to_asgi_response(*arguments, **options)
        answer.headers.pop("content-type", None)
        return answer


def returns_no_content(handler: Callable[..., Any]) -> bool:
    """Return True if the return annotation of the handler is None or `Response[None]`."""
    return inspect.signature(handler).return_annotation in (None, "None", type(None), "Response[None]")


def repeated_answer(handler: Callable[..., Any]) -> Response[None] | None:
    """Return the empty response to a repeated request, as the handler's return annotation requires: a response or
    None.
    """
    with_headers = inspect.signature(handler).return_annotation == "Response[None]"
    return EmptyResponse(None) if with_headers else None


def dropped_object(files: str) -> Response[None]:
    """Return the response to a drop. `files` is the value of a header, from
    `gateway.features.deletion.drops.Dropped.note`.
    """
    return EmptyResponse(None, headers={"X-Lakegate-Files": files})


def changed_bindings(restricts: Restricts | None) -> Response[None]:
    """Return the response to a change of bindings. `restricts` is the value of `DataPolicyBindings.change`."""
    return EmptyResponse(None, headers=_restricts(restricts))


def stating_restriction(stated: Stated[Body]) -> Response[Body]:
    """Return the response to a change, with a header that tells whether a data policy restricts the caller
    afterwards.
    """
    return Response(stated.body, headers=_restricts(stated.restricts))


def _restricts(value: Restricts | None) -> dict[str, str]:
    return {} if value is None else {"X-Lakegate-Restricts": value}


def changed_grants(live_credentials: str | None, *, exempts_caller: bool = False) -> Response[None]:
    """Return the response to a change of grants.

    `live_credentials` is the value of a header, from `LiveCredentials.after_revocation`. If `exempts_caller` is set,
    another header states that the data policy no longer restricts the caller.
    """
    headers = {} if live_credentials is None else {"X-Lakegate-Live-Credentials": live_credentials}
    return EmptyResponse(None, headers=headers | ({"X-Lakegate-Exempt": "caller"} if exempts_caller else {}))
