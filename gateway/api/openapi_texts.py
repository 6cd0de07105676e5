# SPDX-License-Identifier: Apache-2.0
"""Texts of the OpenAPI document: descriptions of headers, parameters and statuses, and examples of errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.scim.wire import ERROR

HEADERS: Final[Mapping[str, str]] = {
    "idempotency-key": "A UUID. The change happens once however often it is sent with this key.",
    "if-match": "The version that is to be changed: 412 when it is another one by now.",
    "if-none-match": "The ETag of an earlier answer: 304 when it still is what would be answered.",
    "x-assume-role": "The UUID of a role to act as: what the caller holds otherwise does not count in this request.",
    "x-iceberg-access-delegation": "`vended-credentials`, or `client-managed` for a client with keys of its own.",
    "x-lakegate-adopt": "`true` to take in files that the catalog has no record of; needs `manage_storage`.",
    "x-project-id": "The project that is meant; the default project, if there is one, when none is named.",
    "x-request-id": "Up to 128 letters, digits and `._:-`; kept in log and audit as `client_request_id`.",
}
"""Descriptions of request headers, by name in lower case."""

PARAMETERS: Final[Mapping[str, str]] = {
    "api": "`catalog` or `management`.",
    "attributes": "Attributes to tell, and no others (RFC 7644 section 3.9).",
    "column": "The name of a top-level column of the table's current schema, spelled as there; to read and take away "
    "also that of a dropped one, or `field-id:` and the column's field id.",
    "asset": "The name of a file of the page.",
    "count": "Most resources in one answer; 200 at most.",
    "excludedAttributes": "Attributes to leave out.",
    "filter": '`attribute eq "value"`, several joined by `and`.',
    "namespace": "Its levels, joined by the character U+001F (`%1F`); in the management API its id.",
    "pageSize": "Most entries in one answer; the server has a limit of its own.",
    "pageToken": "`next-page-token` of the answer before; empty for the first page.",
    "parent": "The namespace whose children are listed, as in a path.",
    "prefix": "The `prefix` that `GET /catalog/v1/config` answers: the warehouse's id.",
    "principalRole": "The role that is asked about, instead of the caller.",
    "principalUser": "The user that is asked about, instead of the caller: `<provider>~<subject>`.",
    "project-id": "As `projectId`.",
    "projectId": "As the header x-project-id; a request that names two different projects is refused.",
    "purgeRequested": "Whether the files go too.",
    "referenced-by": "The views through which an engine reads the object, the outermost first; counts for engines that "
    "the deployment trusts to run views with their owners' rights.",
    "resource_type": "`User` or `Group`.",
    "returnProtectionStatus": "Tell whether each is protected as well.",
    "returnUuids": "Tell the ids as well.",
    "schema_urn": "The `id` of a schema, as `ResourceTypes` names it.",
    "scim_id": "The `id` that the resource was made with.",
    "snapshots": "`all`, or `refs` for those that a branch or tag names.",
    "startIndex": "The first resource to tell, counted from 1.",
    "user_id": "`<provider>~<subject>`.",
    "warehouse": "Its name, or `<project-id>/<name>`.",
    "warehouseStatus": "`active`, `inactive` or both.",
}
"""Descriptions of query and path parameters, by name."""

REFUSALS: Final[Mapping[str, tuple[str, str, str]]] = {
    "400": ("What was sent cannot be understood.", "BadRequestException", "Malformed request: the body is empty"),
    "401": ("There is no token, or not one that is accepted.", "NotAuthorizedException", "The token has expired."),
    "403": (
        "The caller sees what it is about and may not do this, or a policy forbids it.",
        "TableActionForbidden",
        "drop_table is not allowed for oidc~alice",
    ),
    "404": (
        "It does not exist, or the caller may not see it: both are answered alike.",
        "NoSuchTableException",
        "Table does not exist: sales.orders",
    ),
    "408": (
        "The body did not arrive in time.",
        "RequestTimeoutException",
        "The request's body did not arrive in time. Nothing was done.",
    ),
    "409": ("It contradicts what is there.", "AlreadyExistsException", "A table sales.orders exists already"),
    "413": ("The body is too large.", "PayloadTooLarge", "The request body is larger than this server takes."),
    "422": (
        "The idempotency key was used with another body, or the request contradicts itself.",
        "UnprocessableEntityException",
        "One property is both set and removed: owner",
    ),
    "429": (
        "Nothing was changed, and it may be tried again: a part is away, or there is read-only maintenance.",
        "MaintenanceMode",
        "The catalog is in read-only maintenance. Nothing was changed; reading goes on, try again later.",
    ),
    "503": (
        "A part is away, or there is read-only maintenance; nothing was done.",
        "AuthorizationBackendError",
        "The authorization of this request cannot be decided right now. Nothing was changed; try again later.",
    ),
    "5XX": ("A fault. Its id is in the answer and in the log.", "InternalServerError", "An internal error happened."),
}
"""(description, type of an example, message of the example) by status."""

OAUTH_REFUSALS: Final[Mapping[str, Mapping[str, str]]] = {
    "400": {
        "error": "unauthorized_client",
        "error_description": "oidc~trino may not act for oidc~alice (error id 01a1fe72-4e99-725d-80d8-8afc12f93d6e)",
    },
    "401": {
        "error": "invalid_client",
        "error_description": "the engine's own token is needed, as bearer or as actor_token (error id "
        "01a1fe72-4e99-725d-80d8-8afc12f93d6e)",
    },
}
"""Examples of OAuth errors (RFC 6749 section 5.2) by status, for endpoints that read a form."""

LATER: Final = frozenset({"429", "503"})
"""Statuses with the header `Retry-After`."""


def answer_headers(status: str, *, tagged: bool) -> dict[str, Any]:
    """Return the response headers of a status. `tagged`: the response has an `ETag`."""
    told = {"x-request-id": "The id that the gateway made for the request; name it when something is reported."}
    if status in LATER:
        told["Retry-After"] = "Seconds."
    if status == "401":
        told["WWW-Authenticate"] = "`Bearer`, with the reason when a token was sent (RFC 6750)."
    if tagged:
        told["ETag"] = "For `If-None-Match`."
    return {name: {"description": text, "schema": {"type": "string"}} for name, text in told.items()}


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
