# SPDX-License-Identifier: Apache-2.0
"""Texts of the OpenAPI document: descriptions of headers, parameters and statuses, and examples of errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.scim.wire import ERROR

HEADERS: Final[Mapping[str, str]] = {
    "idempotency-key": "A UUID. Requests with the same key make the change once.",
    "if-match": "The version to change: 412 if the resource has another version now.",
    "if-none-match": "The ETag of an earlier response: 304 if the response would be the same.",
    "x-assume-role": "The UUID of a role to act as. The other rights of the caller do not count in this request.",
    "x-iceberg-access-delegation": "`vended-credentials`, or `client-managed` for a client with its own credentials.",
    "x-lakegate-adopt": "`true` to register files that the catalog has no record of. It needs `manage_storage`.",
    "x-project-id": "The id of the project. Without it the default project is used, if there is one.",
    "x-request-id": "Up to 128 letters, digits and `._:-`. Log and audit record it as `client_request_id`.",
}
"""Descriptions of request headers, by name in lower case."""

PARAMETERS: Final[Mapping[str, str]] = {
    "api": "`catalog` or `management`.",
    "attributes": "The only attributes to return (RFC 7644 section 3.9).",
    "column": "The name of a top-level column of the table's current schema, in its spelling. To read and revoke "
    "grants it can be the name of a dropped column, or `field-id:` and the column's field id.",
    "bundle": "`gateway` or `trino`.",
    "asset": "The name of a file of the page.",
    "count": "The largest number of resources in the response; at most 200.",
    "excludedAttributes": "Attributes to leave out.",
    "filter": '`attribute eq "value"`, several joined by `and`.',
    "namespace": "The levels of the namespace, joined by U+001F (`%1F`). In the management API, its id.",
    "pageSize": "The largest number of entries in the response. The server has a limit of its own.",
    "pageToken": "`next-page-token` of the previous response; empty for the first page.",
    "parent": "The namespace of the listed children, in the form of a path.",
    "prefix": "The id of the warehouse, as `GET /catalog/v1/config` returns it, or its name in the project of "
    "the header `x-project-id`.",
    "principalRole": "The role to check instead of the caller, or the role whose grants are listed.",
    "principalUser": "The user to check instead of the caller, or the user whose grants are listed: "
    "`<provider>~<subject>`.",
    "project-id": "As `projectId`.",
    "projectId": "As the header x-project-id. A request with two different projects is refused.",
    "purgeRequested": "`true` to delete the files too. Default: `true` for tables, unless the warehouse keeps them.",
    "referenced-by": "The views through which an engine reads the object, the outermost first. It counts only for "
    "engines that the deployment trusts to run views with the rights of their owners.",
    "resource_type": "`User` or `Group`.",
    "returnProtectionStatus": "`true` to return also if each entry is protected.",
    "returnUuids": "`true` to return the ids too.",
    "schema_urn": "The `id` of a schema, as in `ResourceTypes`.",
    "scim_id": "The `id` of the resource, from the response to its creation.",
    "snapshots": "`all`, or `refs` for the snapshots of branches and tags.",
    "startIndex": "The first resource to return, counted from 1.",
    "user_id": "`<provider>~<subject>`, with each slash as `%2F`.",
    "warehouse": "The name of the warehouse, or `<project-id>/<name>`.",
    "warehouseStatus": "`active`, `inactive` or both.",
}
"""Descriptions of query and path parameters, by name."""

REFUSALS: Final[Mapping[str, tuple[str, str, str]]] = {
    "400": ("The request is malformed or invalid.", "BadRequestException", "Malformed request: the body is empty"),
    "401": ("The token is missing or not accepted.", "NotAuthorizedException", "The token has expired."),
    "403": (
        "The caller sees the object but lacks the right, or a policy forbids the operation.",
        "TableActionForbidden",
        "drop_table is not allowed for oidc~alice. If a privilege is missing, a principal with `manage_grants` on "
        "the table, or (without managed access) its owner, can grant it.",
    ),
    "404": (
        "The object does not exist, or the caller may not see it. The response is the same.",
        "NoSuchTableException",
        "Table does not exist: sales.orders",
    ),
    "408": (
        "The body did not arrive in time.",
        "RequestTimeoutException",
        "The request body did not arrive in time. Nothing was done. Send the request again.",
    ),
    "409": (
        "The request conflicts with the state of the server.",
        "AlreadyExistsException",
        "A table sales.orders exists already",
    ),
    "413": ("The body is too large.", "PayloadTooLarge", "The request body is larger than the limit of this server."),
    "415": (
        "The body has a content encoding other than gzip.",
        "UnsupportedMediaTypeException",
        "The request body has the content-encoding 'br', which is not read here. Send it with content-encoding gzip, "
        "or without that header.",
    ),
    "422": (
        "The idempotency key was used with another body, or the request contradicts itself.",
        "UnprocessableEntityException",
        "One property is both set and removed: owner",
    ),
    "429": (
        "Nothing was changed and the client may retry: a component is unavailable, or the server is in read-only "
        "maintenance.",
        "MaintenanceMode",
        "The catalog is in read-only maintenance. Nothing was changed. Requests that only read still work; try again "
        "later.",
    ),
    "503": (
        "A component is unavailable, or the server is in read-only maintenance. Nothing was done.",
        "AuthorizationBackendError",
        "The authorization of this request cannot be decided now. Nothing was changed. Try again later.",
    ),
    "5XX": (
        "An internal error. Its id is in the response and in the log.",
        "InternalServerError",
        "An internal error occurred. The error id is in the details.",
    ),
}
"""(description, type of an example, message of the example) by status."""

OAUTH_REFUSALS: Final[Mapping[str, Mapping[str, str]]] = {
    "400": {
        "error": "unauthorized_client",
        "error_description": "oidc~trino may not act for oidc~alice (error id 01a1fe72-4e99-725d-80d8-8afc12f93d6e)",
    },
    "401": {
        "error": "invalid_client",
        "error_description": "the engine's own token is missing; send it in the Authorization header or as "
        "actor_token (error id 01a1fe72-4e99-725d-80d8-8afc12f93d6e)",
    },
}
"""Examples of OAuth errors (RFC 6749 section 5.2) by status, for endpoints that read a form."""

LATER: Final = frozenset({"429", "503"})
"""Statuses with the header `Retry-After`."""


def answer_headers(status: str, *, tagged: bool) -> dict[str, Any]:
    """Return the response headers of a status. `tagged`: the response has an `ETag`."""
    headers = {"x-request-id": "The id of the request, made by the gateway. Include it in error reports."}
    if status in LATER:
        headers["Retry-After"] = "Seconds."
    if status == "401":
        headers["WWW-Authenticate"] = "`Bearer`, with the reason if a token was sent (RFC 6750)."
    if tagged:
        headers["ETag"] = "For `If-None-Match`."
    return {name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()}


def refusal_example(status: str) -> dict[str, Any]:
    """Return an example of an error body with this status."""
    _, type, message = REFUSALS[status]
    code = 500 if status == "5XX" else int(status)
    stack = ["Error ID: 01a1fe72-4e99-725d-80d8-8afc12f93d6e"]
    return {"error": {"message": message, "type": type, "code": code, "stack": stack}}


def scim_refusal_example(status: str) -> dict[str, Any]:
    """Return an example of a SCIM error body with this status."""
    code = "500" if status == "5XX" else status
    return {"schemas": [ERROR], "status": code, "detail": REFUSALS[status][2]}
