# SPDX-License-Identifier: Apache-2.0
"""Send the attempts of the canary, which tries to leave the scope of vended credentials, to an S3 store.

Each attempt is a single request, whose response is evaluated here. AWS returns 403 if the caller lacks the right, and
404 for a missing object only to callers that may list the bucket (S3 API reference, GetObject, "Permissions"). So 404
for an object that never existed shows a right.

The requests to the control plane concern settings, buckets, identities, sessions and signatures. None of them changes a
setting of the bucket: a store without protection would apply it to the files of a customer. The proof (`aws/proof.py`)
covers changes of settings. Objects that a request creates have new names and are removed immediately.
"""

from __future__ import annotations

import hashlib
import html
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final
from urllib.parse import quote

from gateway.scope.credential import TemporaryCredential
from gateway.scope.profile import StorageProfile
from gateway.storage.s3.calls import UNSIGNED, Reply, SignedCalls, Unanswered, send_unsigned
from gateway.storage.s3.credential import S3TemporaryCredential, s3_credential
from gateway.storage.s3.profile import Flavor, S3Profile
from gateway.storage.stored import typed
from gateway.storage.trials import PROBE, Act, Attempt, ControlCall, Outcome, reached_by_listing

__all__ = [
    "S3Trials",
    "control_calls",
]

_NAMES: Final = re.compile(r"<Key>([^<]*)</Key>|<CommonPrefixes>\s*<Prefix>([^<]*)</Prefix>")
_CODE: Final = re.compile(r"<Error>.*?<Code>([A-Za-z0-9.]*)</Code>", re.DOTALL)
_UPLOAD: Final = re.compile(r"<UploadId>([^<]+)</UploadId>")
_DENIALS: Final = frozenset({"AccessDenied", "AllAccessDisabled", "Forbidden", "Unauthorized"})


class S3Trials:
    """`Trials` by signed requests."""

    def __init__(self, calls: SignedCalls) -> None:
        self._calls = calls

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[S3Trials]:
        """Yield an object whose attempts share connections."""
        async with self._calls.connected() as calls:
            yield S3Trials(calls)

    async def attempt(self, profile: StorageProfile, temporary: TemporaryCredential, attempt: Attempt) -> Outcome:
        """Send the attempt and return its result."""
        store, keys = typed(profile, S3Profile), _session(temporary)
        try:
            match attempt.act:
                case Act.LIST | Act.LIST_FOLDERS:
                    return await self._list(store, keys, attempt)
                case Act.MULTIPART:
                    return await self._multipart(store, keys, attempt)
                case Act.COPY_PART:
                    return await self._copy_part(store, keys, attempt)
                case _:
                    return _outcome(await self._simple(store, keys, attempt), attempt)
        except Unanswered:
            return Outcome.UNCLEAR

    def control_plane(
        self, profile: StorageProfile, temporary: TemporaryCredential, *, sentinel: str, inside: str, unique: str
    ) -> Sequence[ControlCall]:
        """Return the requests to the control plane (`control_plane.py`), to be sent one by one."""
        return control_calls(
            self._calls, typed(profile, S3Profile), _session(temporary), sentinel=sentinel, inside=inside, unique=unique
        )

    async def _simple(self, store: S3Profile, keys: S3TemporaryCredential, attempt: Attempt) -> Reply:
        match attempt.act:
            case Act.READ:
                return await self._calls.object(store, keys, "GET", attempt.key)
            case Act.HEAD:
                return await self._calls.object(store, keys, "HEAD", attempt.key)
            case Act.WRITE | Act.OVERWRITE:
                return await self._calls.object(store, keys, "PUT", attempt.key, headers=_encryption(store), body=PROBE)
            case Act.COPY:
                headers = {"x-amz-copy-source": _source(store, attempt.source), **_encryption(store)}
                return await self._calls.object(store, keys, "PUT", attempt.key, headers=headers)
            case Act.DELETE:
                return await self._calls.object(store, keys, "DELETE", attempt.key)
            case Act.DELETE_BATCH:
                body = f"<Delete><Object><Key>{html.escape(attempt.key)}</Key></Object></Delete>".encode()
                digest = b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
                headers = {"content-md5": digest, "content-type": "application/xml"}
                return await self._calls.object(
                    store, keys, "POST", "", query={"delete": ""}, headers=headers, body=body
                )
        raise ValueError(f"{attempt.act} needs several requests")

    async def _list(self, store: S3Profile, keys: S3TemporaryCredential, attempt: Attempt) -> Outcome:
        query = {"list-type": "2"}
        if attempt.key:
            query["prefix"] = attempt.key
        if attempt.act is Act.LIST_FOLDERS:
            query["delimiter"] = "/"
        reply = await self._calls.object(store, keys, "GET", "", query=query)
        if reply.succeeded:
            return reached_by_listing(names_in(reply.text), attempt.inside)
        return _outcome(reply, attempt)

    async def _multipart(self, store: S3Profile, keys: S3TemporaryCredential, attempt: Attempt) -> Outcome:
        reply = await self._start(store, keys, attempt.key)
        upload = _UPLOAD.search(reply.text)
        if reply.succeeded and upload is not None:
            await self._abort(store, keys, attempt.key, html.unescape(upload[1]))
        return _outcome(reply, attempt)

    async def _copy_part(self, store: S3Profile, keys: S3TemporaryCredential, attempt: Attempt) -> Outcome:
        """Start an upload inside the scope, and copy the source as its first part."""
        started = await self._start(store, keys, attempt.key)
        upload = _UPLOAD.search(started.text)
        if not started.succeeded or upload is None:
            # A credential without the right to write has no upload to copy into.
            return Outcome.UNTESTED if started.status == 403 else _outcome(started, attempt)
        id = html.unescape(upload[1])
        headers = {"x-amz-copy-source": _source(store, attempt.source)}
        query = {"partNumber": "1", "uploadId": id}
        try:
            reply = await self._calls.object(store, keys, "PUT", attempt.key, query=query, headers=headers)
        finally:
            await self._abort(store, keys, attempt.key, id)
        return _outcome(reply, attempt)

    async def _start(self, store: S3Profile, keys: S3TemporaryCredential, key: str) -> Reply:
        headers = _encryption(store)
        return await self._calls.object(store, keys, "POST", key, query={"uploads": ""}, headers=headers)

    async def _abort(self, store: S3Profile, keys: S3TemporaryCredential, key: str, upload: str) -> None:
        await self._calls.object(store, keys, "DELETE", key, query={"uploadId": upload})


def names_in(text: str) -> list[str]:
    """Return the keys and common prefixes of a listing."""
    return [html.unescape(found[1] or found[2] or "") for found in _NAMES.finditer(text)]


def _outcome(reply: Reply, attempt: Attempt) -> Outcome:
    """Return the result of an attempt, by the response about an object."""
    code = _CODE.search(reply.text)
    if reply.succeeded:
        # Failed copies and batch deletions can have the status of a success, with the error in the body.
        if code is not None:
            return Outcome.REFUSED if code[1] in _DENIALS else Outcome.UNCLEAR
        return Outcome.REACHED
    if reply.status in (401, 403):
        return Outcome.REFUSED
    if reply.status == 404 and (code is None or code[1] != "NoSuchBucket"):
        return Outcome.UNCLEAR if attempt.exists else Outcome.REACHED
    if reply.status in (405, 501):
        return Outcome.UNTESTED
    return Outcome.UNCLEAR


def _encryption(store: S3Profile) -> dict[str, str]:
    """Return the headers for encryption that clients of this profile send with a new object. If a bucket requires them,
    it refuses a request without them, and that refusal would say nothing about the scope.
    """
    if store.aws_kms_key_arn is None:
        return {}
    return {
        "x-amz-server-side-encryption": "aws:kms",
        "x-amz-server-side-encryption-aws-kms-key-id": store.aws_kms_key_arn,
    }


def _source(store: S3Profile, key: str) -> str:
    return "/" + quote(f"{store.bucket}/{key}", safe="/-_.~")


def _session(temporary: TemporaryCredential) -> S3TemporaryCredential:
    keys = s3_credential(temporary)
    if not isinstance(keys, S3TemporaryCredential):
        raise TypeError("attempts to leave a scope are made with temporary credentials only")
    return keys


#: Settings of the bucket that the attempts try to read, by the name of their query parameter.
_SETTINGS: Final = ("policy", "acl", "lifecycle", "cors", "versioning", "encryption", "replication", "notification")
_ADMIN_PATHS: Final = ("/minio/admin/v3/info", "/minio/admin/v3/list-users", "/admin/user", "/admin/bucket")
_TAGS: Final = b"<Tagging><TagSet><Tag><Key>lakegate</Key><Value>check</Value></Tag></TagSet></Tagging>"

_MISSING_SETTING: Final = re.compile(r"<Code>(NoSuch(?!Bucket<)[A-Za-z]+|[A-Za-z]+NotFoundError)</Code>")
_BUCKET: Final = re.compile(r"<Bucket>\s*<")
_KEYS: Final = re.compile(r"<Key>([^<]*)</Key>")
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
        return any(not name.startswith(inside) for name in _KEYS.findall(reply.text))

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
        # In AWS, identities have a separate server. The operator may block connections from the gateway to that server.
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
    return _control_outcome(reply, reads)


async def _setting(send: Send) -> Outcome:
    """Read a setting of the bucket. A response that it is missing counts as reached: only callers that may read it get
    that response.
    """
    try:
        reply = await send()
    except Unanswered:
        return Outcome.UNCLEAR
    return Outcome.REACHED if _MISSING_SETTING.search(reply.text) else _control_outcome(reply, _always)


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
    return _control_outcome(reply, _always)


async def _create_user(calls: SignedCalls, store: S3Profile, keys: S3TemporaryCredential, unique: str) -> Outcome:
    try:
        reply = await calls.action(store, keys, "iam", "CreateUser", UserName=unique)
        if reply.succeeded:
            await calls.action(store, keys, "iam", "DeleteUser", UserName=unique)
    except Unanswered:
        return Outcome.UNCLEAR
    return _control_outcome(reply, _contains(_USER))


def _no_page(reply: Reply) -> bool:
    """Return True unless the response is a page of a user interface, which some servers send for every unknown path."""
    return _PAGE.search(reply.text) is None


def _always(_reply: Reply) -> bool:
    return True


def _contains(pattern: re.Pattern[str]) -> Reads:
    return lambda reply: pattern.search(reply.text) is not None


def _control_outcome(reply: Reply, reads: Reads) -> Outcome:
    """Return the result of a request to the control plane. A response counts as a refusal unless it is a success or a
    failure of the server: a store without this part of the interface returns 400, 404 or 501.
    """
    if reply.succeeded:
        return Outcome.REACHED if reads(reply) and "<Error>" not in reply.text else Outcome.REFUSED
    if reply.status >= 500 and reply.status != 501:
        return Outcome.UNCLEAR
    return Outcome.REFUSED
