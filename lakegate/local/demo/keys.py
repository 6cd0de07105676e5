# SPDX-License-Identifier: Apache-2.0
"""Trials of the demonstration that use the storage key vended for one table.

A trial sends a request and shows whether it was permitted. These call the object store with boto3 and bypass the
gateway, as an attacker would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from lakegate.local.demo.board import Observation
from lakegate.local.ready import ObjectStoreAccess

_CONFIG = Config(
    connect_timeout=5,
    read_timeout=15,
    retries={"total_max_attempts": 1},
    s3={"addressing_style": "path"},
    signature_version="s3v4",
)
REFUSALS = ("AccessDenied", "403", "Forbidden")


@dataclass(frozen=True, slots=True)
class VendedKey:
    """The storage key that the response to a load of a table contains.

    ``location``: the location of the table, to which the key is confined. ``expires_at_ms``: milliseconds since 1970.
    """

    location: str
    endpoint: str
    region: str
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at_ms: int

    @property
    def bucket(self) -> str:
        """Return the bucket of the table."""
        return urlsplit(self.location).netloc

    @property
    def prefix(self) -> str:
        """Return the key prefix of the table in its bucket, without a slash at the end."""
        return urlsplit(self.location).path.strip("/")


def vended(body: dict[str, Any]) -> VendedKey | None:
    """Return the key in the response to a load of a table, or None if the response contains none."""
    offered = body.get("storage-credentials") or []
    if not offered:
        return None
    config = {**body.get("config", {}), **offered[0]["config"]}
    return VendedKey(
        location=str(offered[0]["prefix"]),
        endpoint=config["s3.endpoint"],
        region=config["client.region"],
        access_key=config["s3.access-key-id"],
        secret_key=config["s3.secret-access-key"],
        session_token=config["s3.session-token"],
        expires_at_ms=int(config["s3.session-token-expires-at-ms"]),
    )


def client(service: Literal["s3", "sts"], key: VendedKey) -> Any:
    """Return a client of the object store that has only the vended key."""
    return boto3.client(
        service,
        endpoint_url=key.endpoint,
        region_name=key.region,
        aws_access_key_id=key.access_key,
        aws_secret_access_key=key.secret_key,
        aws_session_token=key.session_token,
        config=_CONFIG,
    )


def owner_client(store: ObjectStoreAccess) -> Any:
    """Return a client with the key of the store's owner.

    It creates and removes the objects that the vended key must not reach.
    """
    return boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name=store.region,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
        config=_CONFIG,
    )


def bucket_and_key(location: str) -> tuple[str, str]:
    """Split ``s3://bucket/some/key`` into (bucket, key)."""
    parts = urlsplit(location)
    return parts.netloc, parts.path.lstrip("/")


async def refused(call: Callable[[], Any]) -> Observation:
    """Make a call that the store must refuse for lack of rights (status 403). Any other error is an unexpected
    result.
    """
    try:
        await asyncio.to_thread(call)
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return Observation(status == 403 and code in REFUSALS, f"{status} {code}")
    return Observation(False, "it worked")


async def answered(call: Callable[[], Any], describe: Callable[[Any], tuple[bool, str]]) -> Observation:
    """Make a call that the store must permit. ``describe`` returns (True if the response is expected, text of the
    response).
    """
    try:
        result = await asyncio.to_thread(call)
    except ClientError as error:
        return Observation(False, f"refused: {error.response.get('Error', {}).get('Code', '')}")
    return Observation(*describe(result))


@dataclass(frozen=True, slots=True)
class Planted:
    """Two objects of the store's owner. One of them is inside the table.

    The key of ``sibling`` begins like the table's prefix, but the object is outside of the table.
    """

    bucket: str
    sibling: str
    inside: str


def plant(store: ObjectStoreAccess, key: VendedKey) -> Planted:
    """Create the objects of `Planted` with the owner's key, so that no refusal is due to a missing object."""
    planted = Planted(key.bucket, f"{key.prefix}-sibling/secret.txt", f"{key.prefix}/data/demonstration.txt")
    owner = owner_client(store)
    for name in (planted.sibling, planted.inside):
        owner.put_object(Bucket=planted.bucket, Key=name, Body=b"not for everybody")
    return planted


def uproot(store: ObjectStoreAccess, planted: Planted) -> None:
    """Remove the two objects."""
    owner = owner_client(store)
    for name in (planted.sibling, planted.inside):
        owner.delete_object(Bucket=planted.bucket, Key=name)
