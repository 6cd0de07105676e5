# SPDX-License-Identifier: Apache-2.0
"""Parse a request that a client wants to send, signed, to an S3 store: its action, keys and headers. Pure.

Only these actions are signed (S3 API reference, "Actions"): to read an object, write it in one or more parts, delete
one or several, and list a prefix of the table. Access lists, tags, versions, policies, copies and every unknown
parameter or header are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from gateway.scope.credential import (
    InvalidListPrefix,
    ListWithoutPrefix,
    ReadRequest,
    RegionMismatch,
    RequestUriMismatch,
    SignedAction,
    UnsignedRequest,
    UnsupportedListParameter,
    UnsupportedSignRequest,
)
from gateway.scope.location import Location, shown
from gateway.storage.s3.profile import SCHEME, S3Profile
from gateway.storage.s3.signing.request_parts import SignedUri, headers_to_sign, keys_to_delete, parse_uri

__all__ = ["UNSIGNED_PAYLOAD", "read_request"]

UNSIGNED_PAYLOAD: Final = "UNSIGNED-PAYLOAD"

_Headers = tuple[dict[str, str], dict[str, str]]
"""(headers to sign, headers to send unsigned)"""

_NUMBER: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
_UPLOAD_ID: Final = re.compile(r"[A-Za-z0-9._~/+=-]{1,1024}", re.ASCII)
_OPERATION: Final = re.compile(r"[A-Za-z0-9]{1,64}", re.ASCII)


def _is(*values: str) -> Callable[[str], bool]:
    return lambda value: value in values


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda value: pattern.fullmatch(value) is not None


def _any_text(value: str) -> bool:
    return len(value) <= 2048


@dataclass(frozen=True, slots=True)
class _Form:
    """A kind of request about an object: the query parameters that it must have and may have, with tests of their
    values.
    """

    method: str
    action: SignedAction
    required: Mapping[str, Callable[[str], bool]]
    optional: Mapping[str, Callable[[str], bool]]

    def fits(self, method: str, parameters: Mapping[str, str]) -> bool:
        """Return True if a request with this method and these parameters has this form."""
        known = {**self.required, **self.optional, "x-id": _matches(_OPERATION)}
        return (
            method == self.method
            and self.required.keys() <= parameters.keys() <= known.keys()
            and all(known[name](value) for name, value in parameters.items())
        )


_PART: Final = {"partNumber": _matches(_NUMBER), "uploadId": _matches(_UPLOAD_ID)}
_UPLOAD: Final = {"uploadId": _matches(_UPLOAD_ID)}

#: Requests on one object. The decision of the door depends on the method alone: GET and HEAD are reads.
_OBJECT_FORMS: Final = (
    _Form("GET", SignedAction.READ, {}, {"partNumber": _matches(_NUMBER)}),
    _Form("HEAD", SignedAction.READ, {}, {"partNumber": _matches(_NUMBER)}),
    _Form("PUT", SignedAction.WRITE, {}, {}),
    _Form("PUT", SignedAction.WRITE, _PART, {}),
    _Form("POST", SignedAction.WRITE, {"uploads": _is("")}, {}),
    _Form("POST", SignedAction.WRITE, _UPLOAD, {}),
    _Form("DELETE", SignedAction.WRITE, _UPLOAD, {}),
    _Form("DELETE", SignedAction.DELETE, {}, {}),
)

#: Parameters of ListObjectsV2, with the tests of their values.
_LIST_PARAMETERS: Final[Mapping[str, Callable[[str], bool]]] = {
    "list-type": _is("2"),
    "prefix": _any_text,
    "delimiter": _is("", "/"),
    "max-keys": _matches(_NUMBER),
    "continuation-token": _any_text,
    "start-after": _any_text,
    "encoding-type": _is("url"),
    "fetch-owner": _is("false", "true"),
    "x-id": _is("ListObjectsV2"),
}


def read_request(profile: S3Profile, location: Location, request: UnsignedRequest) -> ReadRequest:
    """Parse a request, and check that it concerns only keys below `location`.

    Raises RegionMismatch, RequestUriMismatch, ListWithoutPrefix, InvalidListPrefix, UnsupportedListParameter,
    RepeatedListParameter and UnsupportedSignRequest. The error message says which requests are signed.
    """
    if request.provider is not None and request.provider.lower() not in SCHEME.names:
        raise UnsupportedSignRequest(f"Requests to a store of the provider {shown(request.provider)} are not signed")
    if request.region != profile.region:
        raise RegionMismatch(
            f"The request to sign is for the region {shown(request.region)}; the warehouse is in {profile.region!r}"
        )
    uri = parse_uri(profile, request.uri)
    method = request.method.upper()
    headers = headers_to_sign(profile, method, request.headers)
    if uri.key:
        _require_inside(location, uri.key)
        action = _object_action(method, uri.parameters)
        return _read(request, uri, headers, action, (uri.key,), _stated_payload(request))
    if method == "GET":
        return _read(request, uri, headers, SignedAction.READ, (_listed(location, uri.parameters),), _empty(request))
    if method == "POST" and uri.parameters.keys() - {"x-id"} == {"delete"} and not uri.parameters["delete"]:
        return _deletion(location, request, uri, headers)
    raise UnsupportedSignRequest(
        "Requests on the bucket itself are not signed, except lists (ListObjectsV2) and deletions of several objects "
        "(DeleteObjects)"
    )


def _read(
    request: UnsignedRequest,
    uri: SignedUri,
    headers: _Headers,
    action: SignedAction,
    keys: tuple[str, ...],
    payload: str,
    *,
    checks_body: bool = False,
) -> ReadRequest:
    return ReadRequest(
        action=action,
        method=request.method.upper(),
        uri=uri.text,
        headers=headers[0],
        unsigned_headers=headers[1],
        payload=payload,
        keys=keys,
        checks_body=checks_body,
    )


def _object_action(method: str, parameters: Mapping[str, str]) -> SignedAction:
    for form in _OBJECT_FORMS:
        if form.fits(method, parameters):
            return form.action
    names = ", ".join(sorted(parameters)) or "none"
    raise UnsupportedSignRequest(
        f"A {shown(method)} request on an object with these parameters is not signed: {shown(names)}"
    )


def _listed(location: Location, parameters: Mapping[str, str]) -> str:
    """Return the prefix in a list request, which must be inside of the location."""
    for name, value in parameters.items():
        test = _LIST_PARAMETERS.get(name)
        if test is None or not test(value):
            raise UnsupportedListParameter(
                f"The parameter {shown(name)} of a list request is not signed with this value. Only ListObjectsV2 "
                "with its own parameters is signed"
            )
    if "list-type" not in parameters:
        raise UnsupportedListParameter("Only ListObjectsV2 is signed: the parameter list-type must be 2")
    prefix = parameters.get("prefix", "")
    if not prefix:
        raise ListWithoutPrefix("A list request must have the parameter prefix")
    if not prefix.startswith(location.key_prefix) or _climbs(prefix):
        raise InvalidListPrefix(
            f"The prefix of a list request must start with the table's location and a slash: {location.key_prefix!r}"
        )
    return prefix


def _deletion(location: Location, request: UnsignedRequest, uri: SignedUri, headers: _Headers) -> ReadRequest:
    if request.body is None:
        raise UnsupportedSignRequest("A deletion of several objects is signed only with its body, which has the keys")
    body = request.body.encode()
    keys = keys_to_delete(body)
    for key in keys:
        _require_inside(location, key)
        if _climbs(key):
            raise RequestUriMismatch("A key to delete must not have an empty segment or the segments '.' and '..'")
    # The hash is computed from the body that was checked. The client's hash could be of another body.
    return _read(request, uri, headers, SignedAction.DELETE, keys, sha256(body).hexdigest(), checks_body=True)


def _require_inside(location: Location, key: str) -> None:
    if not key.startswith(location.key_prefix):
        raise RequestUriMismatch(
            f"The request to sign is for {shown(key)}, which is not below the location of the table"
        )


def _climbs(key: str) -> bool:
    return "//" in key or "\\" in key or any(segment in (".", "..") for segment in key.split("/"))


_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


def _stated_payload(request: UnsignedRequest) -> str:
    """Return the hash of the body that the client sends, or else the text that stands for an unsigned body.

    The body does not matter for the decision, because the keys are in the URI.
    """
    for name, value in request.headers:
        if name.lower() == "x-amz-content-sha256":
            if _HASH.fullmatch(value) or value in _STATED_PAYLOADS:
                return value
            raise UnsupportedSignRequest(
                f"The header x-amz-content-sha256 must be a SHA-256 hash or one of {', '.join(_STATED_PAYLOADS)}"
            )
    return UNSIGNED_PAYLOAD


#: Other payloads are signed chunks. Only the gateway has the secret key that signs them, so it refuses such requests.
_STATED_PAYLOADS: Final = (UNSIGNED_PAYLOAD, "STREAMING-UNSIGNED-PAYLOAD-TRAILER")


def _empty(request: UnsignedRequest) -> str:
    if request.body:
        raise UnsupportedSignRequest("A list request must not have a body")
    return UNSIGNED_PAYLOAD
