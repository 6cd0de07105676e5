# SPDX-License-Identifier: Apache-2.0
"""Map exceptions to error responses. An unknown exception becomes 500 with an error id and no details."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import structlog
from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException
from litestar.types import Scope, Send
from msgspec import UNSET
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import (
    AuditUnavailable,
    CommitUnknown,
    DatabaseUnavailable,
    DecisionEngineUnavailable,
    OutOfTime,
)
from gateway.access.nouns.authz_errors import audit_unavailable, unavailable
from gateway.access.operation import HttpOperation
from gateway.api.serves import OPERATIONS_OF
from gateway.api.services import Services
from gateway.api.warehouse_names import by_name
from gateway.iceberg.errors import (
    BadRequestException,
    CatalogError,
    CommitStateUnknownException,
    InternalServerError,
    PayloadTooLarge,
    ServiceUnavailableException,
    TooManyRequests,
)
from gateway.iceberg.wire import ErrorModel, ErrorResponse
from gateway.scim.errors import ScimError, not_supported
from gateway.scim.wire import ERROR, ErrorBody
from gateway.scim.wire import MEDIA_TYPE as SCIM

_log = structlog.get_logger("api.errors")

#: The `scimType` of errors other than ScimError, by status (RFC 7644 section 3.12).
_SCIM_TYPES = {400: "invalidValue", 413: "tooMany"}

#: Statuses that close the connection. The body was not read completely, and its rest could be parsed as a request.
_UNREAD = frozenset({408, 413, 415})

_encoder = msgspec.json.Encoder()


class NoSuchRoute(CatalogError, code=404, type="NotFoundException"):
    """No endpoint has this path."""


class MethodNotAllowed(CatalogError, code=405, type="MethodNotAllowedException"):
    """The endpoint does not support this method."""


class OAuthRefused(CatalogError, code=400, type="OAuthError"):
    """Refusal of a token request, with an error code of RFC 6749 section 5.2 or RFC 8693."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error


class OAuthUnauthenticated(OAuthRefused, code=401, type="OAuthError"):
    """Refusal of a token request of an unauthenticated client."""


class RequestTooSlow(CatalogError, code=408, type="RequestTimeoutException"):
    """The request did not arrive in time and changed nothing."""


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Return the error response for an exception, and log it. Litestar calls it as its exception handler."""
    error_answer = by_name(request.scope, catalog_error(error, catalog_mutation=is_catalog_mutation(request.scope)))
    if isinstance(error_answer, NoSuchRoute | MethodNotAllowed):
        error_answer = not_supported(request.scope["path"]) or error_answer
    error_id = str(uuid7())
    if error_answer.denial_id is not None:
        error_answer = _with_link(request.app.state.services, error_answer)
    if error_answer.code >= 500 and error_answer.code != 501:
        _log.error("request.failed", error_id=error_id, error_type=error_answer.type, exc_info=error)
    else:
        refused = {
            "error_id": error_id,
            "error_type": error_answer.type,
            "status": error_answer.code,
            "message": error_answer.message,
        }
        _log.info("request.refused", **refused, **_outage_reason(error))
    content, media_type = _in_form_of(request.scope["path"], error_answer, error_id)
    return Response(
        content=content, status_code=error_answer.code, media_type=media_type, headers=_headers(error_answer)
    )


def _with_link(services: Services, error: CatalogError) -> CatalogError:
    """Add the address of the page with the reason to the message. Engines show their users nothing but the message.

    Without an address in the settings it is the path alone: the request could name the address of another server.
    """
    page = f"{(services.base_uri or '').rstrip('/')}/ui?denial={error.denial_id}"
    error.message = f"{error.message} Reason, and request for access: {page}"
    return error


def _in_form_of(path: str, error: CatalogError, error_id: str) -> tuple[bytes, str]:
    """Return (body of an error, its media type), in the form of the API to which `path` belongs."""
    if path.startswith("/scim/"):
        return scim_body(error, error_id), SCIM
    return body_of(error, error_id), MediaType.JSON.value


def _outage_reason(error: Exception) -> dict[str, str]:
    """Return the reason of an outage as a log field; no field for other errors. Clients do not see which dependency
    failed.
    """
    for each in (error, error.__cause__):
        if isinstance(each, (DatabaseUnavailable, DecisionEngineUnavailable, AuditUnavailable)):
            return {"reason": f"{type(each).__name__}: {each}"}
    return {}


def catalog_error(error: Exception, *, catalog_mutation: bool) -> CatalogError:
    """Return the CatalogError for an exception. If the request is a catalog mutation, status 503 becomes 429."""
    match error:
        case CommitUnknown():
            error_answer: CatalogError = CommitStateUnknownException(
                "The outcome of the change is unknown. Read the object again to see whether it was changed."
            )
        case AuditUnavailable():
            error_answer = audit_unavailable(error, catalog_mutation)
        case DatabaseUnavailable() | DecisionEngineUnavailable():
            error_answer = unavailable(catalog_mutation)
        case OutOfTime():
            error_answer = request_timeout()
        case CatalogError():
            error_answer = error
        case HTTPException():
            error_answer = _from_framework(error)
        case _:
            error_answer = InternalServerError(
                "An internal error occurred. Its error id is in the details and in the gateway's log."
            )
    if catalog_mutation and error_answer.code == 503:
        # Clients read a 5xx response to a commit as "state unknown" and never delete its files. Here nothing was
        # committed, so the status is 429.
        return TooManyRequests(error_answer.message)
    return error_answer


def _from_framework(error: HTTPException) -> CatalogError:
    match error.status_code:
        case 404:
            return NoSuchRoute("There is no such endpoint.")
        case 405:
            return MethodNotAllowed("This endpoint does not support this HTTP method.")
        case 413:
            return PayloadTooLarge("The request body is larger than the limit of this server.")
        case code if 400 <= code < 500:
            return BadRequestException(f"Malformed request: {error.detail}")
        case _:
            return InternalServerError(
                "An internal error occurred. Its error id is in the details and in the gateway's log."
            )


class OAuthError(msgspec.Struct, frozen=True):
    """The body of an OAuth error (RFC 6749 section 5.2)."""

    error: str
    error_description: str


def body_of(error: CatalogError, error_id: str) -> bytes:
    """Return the error body of the Iceberg protocol or of OAuth. Details of server errors are logged and not sent."""
    if isinstance(error, OAuthRefused):
        return _encoder.encode(OAuthError(error.error, f"{error.message} (error id {error_id})"))
    details = error.detail if error.code < 500 else ()
    return _encoder.encode(
        ErrorResponse(
            error=ErrorModel(
                message=error.message, type=error.type, code=error.code, stack=(*details, f"Error ID: {error_id}")
            )
        )
    )


def scim_body(error: CatalogError, error_id: str) -> bytes:
    """Return the error body of SCIM (RFC 7644 section 3.12)."""
    scim_type = error.scim_type if isinstance(error, ScimError) else _SCIM_TYPES.get(error.code, "")
    return _encoder.encode(
        ErrorBody(
            schemas=(ERROR,),
            status=str(error.code),
            scim_type=scim_type or UNSET,
            detail=f"{error.message} (error id {error_id})",
        )
    )


def request_timeout() -> CatalogError:
    """Return the 503 error of a request that timed out and changed nothing. `catalog_error` changes it to 429 for
    catalog mutations.
    """
    return ServiceUnavailableException(
        "The request exceeded the time limit of this server. Nothing was changed. Try again later."
    )


def _headers(error: CatalogError) -> dict[str, str]:
    headers = {"Cache-Control": "no-store"}
    retry_after = getattr(error, "retry_after_s", 1 if error.code in (429, 503) else None)
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    if error.code in _UNREAD:
        headers["Connection"] = "close"
    if error.code == 415:
        # RFC 9110 section 15.5.16: a 415 response lists the supported content codings.
        headers["Accept-Encoding"] = "gzip"
    if error.code == 401:
        headers["WWW-Authenticate"] = getattr(error, "challenge", "Bearer")
    return headers


async def send_error(scope: Scope, send: Send, error: CatalogError) -> None:
    """Send an error response outside of the router, in the form of the API to which the path belongs."""
    body, media_type = _in_form_of(scope["path"], error, str(uuid7()))
    headers = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in _headers(error).items()]
    await send(cast(Any, {"type": "http.response.start", "status": error.code, "headers": headers}))
    shown = b"" if scope.get("method") == "HEAD" else body
    await send(cast(Any, {"type": "http.response.body", "body": shown, "more_body": False}))


def is_catalog_mutation(scope: Scope) -> bool:
    """Return True if the request's route is for a catalog mutation."""
    handler = scope.get("route_handler")
    operations: frozenset[type[HttpOperation]] = getattr(handler, "opt", {}).get(OPERATIONS_OF, frozenset())
    return any(operation.is_catalog_mutation() for operation in operations)
