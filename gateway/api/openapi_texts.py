# SPDX-License-Identifier: Apache-2.0
"""Texts of the OpenAPI document: descriptions of headers, parameters and statuses, and examples of errors.

`openapi_examples.json` has requests and answers of a real server by operation. `make api-examples` records them, and
replaces ids, times and secrets. Examples of other request bodies are generated from their types. A test decodes every
example as the gateway decodes a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import inspect

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
        "The request body has the content-encoding 'br', which this server cannot read. Send it with "
        "content-encoding gzip, or without that header.",
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
    """Return the response headers for a status. `tagged` is True if the response has an `ETag`."""
    headers = {"x-request-id": "The id of the request, made by the gateway. Include it in error reports."}
    if status in LATER:
        headers["Retry-After"] = "Seconds."
    if status == "401":
        headers["WWW-Authenticate"] = "`Bearer`, with the reason if a token was sent (RFC 6750)."
    if tagged:
        headers["ETag"] = "For `If-None-Match`."
    return {name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()}


def refusal_example(status: str) -> dict[str, Any]:
    """Return an example of an error body for this status."""
    _, type, message = REFUSALS[status]
    code = 500 if status == "5XX" else int(status)
    stack = ["Error ID: 01a1fe72-4e99-725d-80d8-8afc12f93d6e"]
    return {"error": {"message": message, "type": type, "code": code, "stack": stack}}


def scim_refusal_example(status: str) -> dict[str, Any]:
    """Return an example of a SCIM error body for this status."""
    code = "500" if status == "5XX" else status
    return {"schemas": [ERROR], "status": code, "detail": REFUSALS[status][2]}


EXAMPLES: Final = Path(__file__).with_name("openapi_examples.json")


class Recorded(msgspec.Struct, frozen=True, omit_defaults=True):
    """The bodies of a request and of its answer; unset if there is none, or none was recorded."""

    request: Any = msgspec.UNSET
    response: Any = msgspec.UNSET


def recorded_examples() -> dict[str, Recorded]:
    """Return the recorded examples by the name of the operation that names the endpoint."""
    return msgspec.json.decode(EXAMPLES.read_bytes(), type=dict[str, Recorded])


_ID: Final = "01a1fe72-4e99-725d-80d8-8afc12f93d6e"

#: Realistic values by the name of a member.
_BY_NAME: Final[Mapping[str, Any]] = {
    "bucket": "lake",
    "credential-type": "access-key",
    "description": "Analysts of the sales team",
    "email": "alice@example.com",
    "engine": "oidc~trino",
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "endpoint": "https://s3.example.com",
    "id": "oidc~alice",
    "location": "s3://lake/sales/orders",
    "metadata-location": "s3://lake/sales/orders/metadata/00000-01a1fe72.metadata.json",
    "name": "orders",
    "namespace": ["sales"],
    "project-name": "Sales",
    "region": "eu-central-1",
    "role": _ID,
    "search": "sales",
    "user": "oidc~alice",
    "subject_token": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl",
    "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
    "warehouse-name": "lake",
}


def example_of(kind: Any) -> Any:
    """Return a JSON value that decodes as `kind`. It has all required fields; if there are none, the first field. Lists
    have one entry.
    """
    return _example(inspect.type_info(kind), None, 0)


def _example(info: inspect.Type, name: str | None, depth: int) -> Any:
    match info:
        case inspect.Metadata(type=described, extra=extra):
            return extra["example"] if extra and "example" in extra else _example(described, name, depth)
        case inspect.CustomType() | inspect.AnyType() | inspect.RawType():
            return _BY_NAME.get(name or "", {})
        case inspect.StructType():
            return _struct(info, depth)
        case inspect.UnionType(types=types):
            return _example(_chosen(types, name), name, depth)
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            known = _BY_NAME.get(name or "")
            return (
                known if isinstance(known, list) else [] if depth > 4 else [_example(info.item_type, None, depth + 1)]
            )
        case inspect.DictType():
            return {"owner": "alice"} if isinstance(info.value_type, inspect.StrType) else {}
        case _:
            return _scalar(info, name)


def _chosen(types: tuple[inspect.Type, ...], name: str | None) -> inspect.Type:
    """Return one type of a union: the string type if there is an example text for `name`, else the first type that is
    not null.
    """
    real = [each for each in types if not isinstance(each, inspect.NoneType)]
    known = _BY_NAME.get(name or "")
    return next((each for each in real if isinstance(known, str) and isinstance(each, inspect.StrType)), real[0])


def _struct(info: inspect.StructType, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {} if info.tag_field is None else {info.tag_field: info.tag}
    fields = [each for each in info.fields if each.required] or [each for each in info.fields][:1]
    return made | {each.encode_name: _example(each.type, each.encode_name, depth + 1) for each in fields}


def _scalar(info: inspect.Type, name: str | None) -> Any:
    match info:
        case inspect.BoolType():
            return True
        case inspect.IntType(ge=least):
            return least or 1
        case inspect.FloatType():
            return 1.0
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.EnumType(cls=members):
            return next(iter(members)).value
        case inspect.UUIDType():
            return _ID
        case inspect.DateTimeType():
            return "2030-01-01T00:00:00Z"
        case inspect.StrType():
            known = _BY_NAME.get(name or "")
            return known if isinstance(known, str) else "text"
        case _:
            return None


def decodes(kind: Any, value: Any) -> bool:
    """Return True if `value` decodes as `kind`."""
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=kind)
    except msgspec.ValidationError:
        return False
    return True
