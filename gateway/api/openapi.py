# SPDX-License-Identifier: Apache-2.0
"""Generate the OpenAPI document from the declarations of the handlers.

Bodies, query parameters and headers are the handler's `Inputs` (`binding.py`); `Ctx` reads no other inputs. The schema
of the response is the handler's return annotation. Paths, names and statuses are attributes of the operation class.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Response

from gateway.access.operation import HttpOperation
from gateway.api.binding import Inputs
from gateway.api.errors import OAuthError
from gateway.api.openapi_rights import rights_text
from gateway.api.openapi_tags import described_tags, tag_of
from gateway.api.openapi_texts import (
    HEADERS,
    OAUTH_REFUSALS,
    PARAMETERS,
    REFUSALS,
    Recorded,
    answer_headers,
    example_of,
    recorded_examples,
    refusal_example,
    scim_refusal_example,
)
from gateway.api.request_encoding import FORM
from gateway.api.serves import INPUTS, SERVED
from gateway.iceberg.codec import plain_descriptions
from gateway.iceberg.wire import ErrorResponse
from gateway.scim.wire import MEDIA_TYPE as SCIM
from gateway.scim.wire import ErrorBody

_REF = "#/components/schemas/{name}"
_METHODS = ("get", "head", "post", "put", "patch", "delete")
_IF_NONE_MATCH = "if-none-match"
_IDEMPOTENCY_KEY = "idempotency-key"
_UUIDS = frozenset({"warehouse_id", "namespace_id", "table_id", "view_id", "role_id"})
_HEADER_FORMATS: Mapping[str, dict[str, str]] = {
    _IDEMPOTENCY_KEY: {"format": "uuid"},
    "x-assume-role": {"format": "uuid"},
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a handler: type of its body or None, whether the body may be absent, and whether it is a file."""

    body: Any
    may_be_empty: bool
    is_file: bool = False


def openapi_document(select: Callable[[type[HttpOperation]], bool] = lambda operation: True) -> dict[str, Any]:
    """Return the OpenAPI document of all served operations for which `select` returns True, as values for a JSON
    encoder.
    """
    handlers: dict[Any, list[type[HttpOperation]]] = {}
    for operation, handler in SERVED.items():
        if select(operation):
            handlers.setdefault(handler, []).append(operation)
    described = [
        (operations, handler.opt[INPUTS], _answer(_function(handler))) for handler, operations in handlers.items()
    ]
    types = [
        ErrorResponse,
        OAuthError,
        ErrorBody,
        *(each for _, reads, answer in described for each in (reads.body, reads.form, answer.body) if each is not None),
    ]
    schemas, components = plain_descriptions(msgspec.json.schema_components(types, ref_template=_REF))
    schema_of = dict(zip(map(repr, types), schemas, strict=True))
    examples = recorded_examples()
    paths: dict[str, dict[str, Any]] = {}
    for operations, reads, answer in described:
        method = operations[0].endpoint.split(" ", 1)[0].lower()
        for path in operations[0].paths():
            recorded = examples.get(operations[0].__name__, Recorded())
            described_at = _operation(operations, path, reads, answer, schema_of, recorded)
            paths.setdefault(path, {})[method] = (
                described_at if path not in operations[0].also_at else _older(described_at, path)
            )
    paths = {
        path: dict(sorted(of.items(), key=lambda each: _METHODS.index(each[0]))) for path, of in sorted(paths.items())
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lakegate", "version": version("lakegate"), "license": {"name": "Apache-2.0"}},
        "tags": described_tags(paths),
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
        "security": [{"bearer": []}],
    }


def is_catalog(operation: type[HttpOperation]) -> bool:
    """Return True if the operation is part of the catalog API (the Iceberg REST protocol and its extensions)."""
    return " /catalog/" in operation.endpoint


def _operation(
    operations: list[type[HttpOperation]],
    path: str,
    reads: Inputs,
    answer: Answer,
    schema_of: Mapping[str, Any],
    recorded: Recorded,
) -> dict[str, Any]:
    first = operations[0]
    summary, _, rest = (inspect.getdoc(first) or "").partition("\n")
    described: dict[str, Any] = {
        "operationId": first.__name__,
        "summary": summary,
        "description": _description(operations, rest.strip()),
        "tags": [tag_of(path)],
        "parameters": [*_path_parameters(path), *_query_parameters(reads), *_header_parameters(first, reads)],
        "responses": _responses(operations, reads, answer, schema_of, recorded),
    }
    for sent, media_type in ((reads.body, _media_type(first)), (reads.form, FORM)):
        if sent is not None:
            shown = example_of(sent) if recorded.request is msgspec.UNSET else recorded.request
            content = {"schema": schema_of[repr(sent)], "example": shown}
            described["requestBody"] = {"required": True, "content": {media_type: content}}
    if any(operation.is_public() for operation in operations):
        described["security"] = []
    return described


def _description(operations: list[type[HttpOperation]], rest: str) -> str:
    """Return the description of an endpoint: the text after its summary, its other operations, and their rights."""
    others = [f"`{each.name()}`: {inspect.getdoc(each) or ''}" for each in operations[1:]]
    return "\n\n".join(filter(None, [rest, *others, rights_text(operations)]))


def _older(described: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the description of an operation for an older path: deprecated, with an operation id that is unique in the
    document.
    """
    named = "".join(part.capitalize() for part in re.findall(r"[a-z]+", path.split("/v1/", 1)[-1]))
    return {**described, "operationId": f"{described['operationId']}At{named}", "deprecated": True}


def _path_parameters(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", path):
        uuid = {"format": "uuid"} if name.endswith("_id") and name in _UUIDS else {}
        yield _parameter(name, "path", {"type": "string", **uuid}, required=True)


def _query_parameters(reads: Inputs) -> Iterator[dict[str, Any]]:
    for name, kind in reads.query.items():
        yield _parameter(name, "query", {"type": kind})


def _header_parameters(operation: type[HttpOperation], reads: Inputs) -> Iterator[dict[str, Any]]:
    """Describe the headers that the handler reads, and the headers that other code reads before the handler is
    called.
    """
    around = [
        *((_IDEMPOTENCY_KEY,) if operation.uses_idempotency_keys() else ()),  # `idempotency.py`
        *(() if operation.is_public() else ("x-assume-role", "x-project-id")),  # `provide_ctx`
        "x-request-id",  # `Latch`
    ]
    for name in dict.fromkeys((*reads.headers, *around)):
        yield _parameter(name, "header", {"type": "string", **_HEADER_FORMATS.get(name, {})})


def _parameter(name: str, place: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    description_text = (HEADERS if place == "header" else PARAMETERS).get(name)
    described = {} if description_text is None else {"description": description_text}
    return {"name": name, "in": place, "required": required, **described, "schema": schema}


def _responses(
    operations: list[type[HttpOperation]],
    reads: Inputs,
    answer: Answer,
    schema_of: Mapping[str, Any],
    recorded: Recorded,
) -> dict[str, Any]:
    first = operations[0]
    tagged = _IF_NONE_MATCH in reads.headers
    success: dict[str, Any] = {"description": "Done.", "headers": answer_headers("200", tagged=tagged)}
    if answer.body is not None and not first.endpoint.startswith("HEAD "):
        media_type = "text/html" if answer.body is str else _media_type(first)
        shown = {} if recorded.response is msgspec.UNSET else {"example": recorded.response}
        success["content"] = {media_type: {"schema": schema_of[repr(answer.body)], **shown}}
    elif answer.is_file and not first.is_public():
        # The files that need a token are the bundles of policies.
        success["content"] = {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}
    responses = {str(first.returns): success}
    if answer.may_be_empty and not tagged:
        responses["204"] = {
            "description": "Done; the request did not ask for a body.",
            "headers": answer_headers("204", tagged=False),
        }
    if tagged:
        responses["304"] = {
            "description": "Not modified: the response of the client is current.",
            "headers": answer_headers("304", tagged=True),
        }
    for status in _refusals(operations):
        description_text = {"description": REFUSALS[status][0], "headers": answer_headers(status, tagged=False)}
        if not first.endpoint.startswith("HEAD "):
            kind, example = _refusal(first, reads, status)
            description_text["content"] = {_media_type(first): {"schema": schema_of[repr(kind)], "example": example}}
        responses[status] = description_text
    return dict(sorted(responses.items()))


def _refusal(operation: type[HttpOperation], reads: Inputs, status: str) -> tuple[type, Any]:
    """Return (type of the error body, example). The body is that of OAuth, SCIM or the Iceberg protocol."""
    if operation.is_provisioning():
        return ErrorBody, scim_refusal_example(status)
    if reads.form is not None and status in ("400", "401"):
        return OAuthError, OAUTH_REFUSALS[status]
    return ErrorResponse, refusal_example(status)


def _media_type(operation: type[HttpOperation]) -> str:
    return SCIM if operation.is_provisioning() else "application/json"


def _refusals(operations: list[type[HttpOperation]]) -> list[str]:
    """Return the error statuses of the operations."""
    if any(operation.is_public() for operation in operations):
        return ["503"] if operations[0].endpoint == "GET /health" else ["404"]
    statuses = ["400", "401", "403", "404", "5XX"]
    if any(operation.is_catalog_mutation() for operation in operations):
        # 422: another body under a used idempotency key. 429 replaces 503, which clients read as "state unknown".
        return [*statuses, "408", "409", "413", "415", "422", "429"]
    changes = any(not operation.endpoint.startswith(("GET ", "HEAD ")) for operation in operations)
    repeats = operations[0].uses_idempotency_keys()
    return [*statuses, "503", *(["408", "409", "413", "415"] if changes else []), *(["422"] if repeats else [])]


def _answer(function: Callable[..., Any]) -> Answer:
    description_text = typing.get_type_hints(function).get("return")
    if typing.get_origin(description_text) is Response:
        (description_text,) = typing.get_args(description_text)
        may_be_empty = type(None) in typing.get_args(description_text)
    else:
        may_be_empty = False
    # A response without a body (304) has a status of its own and no schema.
    kinds = typing.get_args(description_text) or (description_text,)
    given = [each for each in kinds if each is not type(None) and each is not bytes]
    return Answer(given[0] if given else None, may_be_empty, is_file=not given and bytes in kinds)


def _function(handler: Any) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(handler.fn, "value", handler.fn)
    return function
