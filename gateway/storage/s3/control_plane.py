# SPDX-License-Identifier: Apache-2.0
"""Requests of the canary to the control plane of an S3 store: settings, buckets, identities, sessions, signatures.

None of them changes a setting of the bucket: a store without protection would carry it out on the files of a customer.
The proof (`proof.py`) covers those actions. What a request creates has a new name and is removed at once.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from gateway.storage.s3.credential import S3TemporaryCredential
from gateway.storage.s3.profile import Flavor, S3Profile
from gateway.storage.s3.signed_calls import Reply, SignedCalls, Unanswered
from gateway.storage.s3.unsigned_calls import UNSIGNED, send_unsigned
from gateway.storage.trials import ControlCall, Outcome

__all__ = ["control_calls"]

#: Settings that are read, by the name of their query parameter.
_SETTINGS: Final = ("policy", "acl", "lifecycle", "cors", "versioning", "encryption", "replication", "notification")
_ADMIN_PATHS: Final = ("/minio/admin/v3/info", "/minio/admin/v3/list-users", "/admin/user", "/admin/bucket")
_TAGS: Final = b"<Tagging><TagSet><Tag><Key>lakegate</Key><Value>check</Value></Tag></TagSet></Tagging>"

_MISSING_SETTING: Final = re.compile(r"<Code>(NoSuch(?!Bucket<)[A-Za-z]+|[A-Za-z]+NotFoundError)</Code>")
_BUCKET: Final = re.compile(r"<Bucket>\s*<")
_NAMES: Final = re.compile(r"<Key>([^<]*)</Key>")
_USERS: Final = re.compile(r"<ListUsersRes")
_USER: Final = re.compile(r"<CreateUserRes")
_PAGE: Final = re.compile(r"<html|<!doctype html", re.IGNORECASE)
_SECRET: Final = re.compile(r"<SecretAccessKey>[^<]")

Send = Callable[[], Awaitable[Reply]]
Reads = Callable[[Reply], bool]
"""Function that returns True if a successful answer shows that the request was carried out."""


def control_calls(
    calls: SignedCalls, store: S3Profile, keys: S3TemporaryCredential, *, sentinel: str, inside: str, unique: str
) -> Sequence[ControlCall]:
    """Return the requests for one credential, as `Trials.control_plane` describes them."""
    bucket = partial(calls.object, store, keys)

    def others(reply: Reply) -> bool:
        return any(not name.startswith(inside) for name in _NAMES.findall(reply.text))

    found: list[tuple[str, Send, Reads]] = []
    found += [
        ("list-buckets", partial(calls.service, store, keys, "GET", "/"), _contains(_BUCKET)),
        ("list-versions", partial(bucket, "GET", "", query={"versions": ""}), others),
        ("list-uploads", partial(bucket, "GET", "", query={"uploads": ""}), others),
        (
            "put-object-acl",
            partial(bucket, "PUT", sentinel, query={"acl": ""}, headers={"x-amz-acl": "private"}),
            _always,
        ),
        ("put-object-tagging", partial(bucket, "PUT", sentinel, query={"tagging": ""}, body=_TAGS), _always),
        ("get-session-token", partial(calls.action, store, keys, "sts", "GetSessionToken"), _contains(_SECRET)),
        (
            "get-federation-token",
            partial(calls.action, store, keys, "sts", "GetFederationToken", Name="lakegate-check"),
            _contains(_SECRET),
        ),
    ]
    if store.endpoint is not None:
        # AWS has another server for identities, which the operator may have closed to the gateway.
        found.append(("list-users", partial(calls.action, store, keys, "iam", "ListUsers"), _contains(_USERS)))
        found += [
            (f"admin {path}", partial(calls.service, store, keys, "GET", path), _no_page) for path in _ADMIN_PATHS
        ]
    made: list[ControlCall] = [(name, partial(_call, send, reads)) for name, send, reads in found]
    made += [
        (f"get-bucket-{name}", partial(_setting, partial(bucket, "GET", "", query={name: ""}))) for name in _SETTINGS
    ]
    for name in UNSIGNED:
        send = partial(send_unsigned, calls, store, keys, name, sentinel=sentinel, inside=inside)
        made.append((name, partial(_call, send, _always)))
    made.append(("create-bucket", partial(_create_bucket, calls, store, keys, unique)))
    if store.endpoint is not None:
        made.append(("create-user", partial(_create_user, calls, store, keys, unique)))
    return made


async def _call(send: Send, reads: Reads) -> Outcome:
    try:
        reply = await send()
    except Unanswered:
        return Outcome.UNCLEAR
    return _outcome(reply, reads)


async def _setting(send: Send) -> Outcome:
    """Read a setting. A missing one is reported as such only to callers that may read it."""
    try:
        reply = await send()
    except Unanswered:
        return Outcome.UNCLEAR
    return Outcome.REACHED if _MISSING_SETTING.search(reply.text) else _outcome(reply, _always)


async def _create_bucket(calls: SignedCalls, store: S3Profile, keys: S3TemporaryCredential, unique: str) -> Outcome:
    body = b""
    if store.flavor is Flavor.AWS and store.region != "us-east-1":
        constraint = f"<LocationConstraint>{store.region}</LocationConstraint>"
        body = f"<CreateBucketConfiguration>{constraint}</CreateBucketConfiguration>".encode()
    try:
        reply = await calls.service(store, keys, "PUT", f"/{unique}", body=body)
        if reply.succeeded:
            await calls.service(store, keys, "DELETE", f"/{unique}")
    except Unanswered:
        return Outcome.UNCLEAR
    return _outcome(reply, _always)


async def _create_user(calls: SignedCalls, store: S3Profile, keys: S3TemporaryCredential, unique: str) -> Outcome:
    try:
        reply = await calls.action(store, keys, "iam", "CreateUser", UserName=unique)
        if reply.succeeded:
            await calls.action(store, keys, "iam", "DeleteUser", UserName=unique)
    except Unanswered:
        return Outcome.UNCLEAR
    return _outcome(reply, _contains(_USER))


def _no_page(reply: Reply) -> bool:
    """Return False for a page of a user interface, which some servers send for every unknown path."""
    return _PAGE.search(reply.text) is None


def _always(_reply: Reply) -> bool:
    return True


def _contains(pattern: re.Pattern[str]) -> Reads:
    return lambda reply: pattern.search(reply.text) is not None


def _outcome(reply: Reply, reads: Reads) -> Outcome:
    """Return the result of a request. Every answer but a success and a failure of the server is a refusal: a store
    without this part of the interface answers 400, 404 or 501.
    """
    if reply.succeeded:
        return Outcome.REACHED if reads(reply) and "<Error>" not in reply.text else Outcome.REFUSED
    if reply.status >= 500 and reply.status != 501:
        return Outcome.UNCLEAR
    return Outcome.REFUSED
