# SPDX-License-Identifier: Apache-2.0
"""Trials with a key that was vended for one table, made as an attacker would: with boto3, past the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from gateway.embedded.demo.board import Observation
from gateway.embedded.ready import ObjectStoreAccess

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
    """What a table's answer held: the key, where it is good, and until when (milliseconds since 1970)."""

    location: str
    endpoint: str
    region: str
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at_ms: int

    @property
    def bucket(self) -> str:
        """The bucket of the table."""
        return urlsplit(self.location).netloc

    @property
    def prefix(self) -> str:
        """The table's own part of the bucket, without a slash at the end."""
        return urlsplit(self.location).path.strip("/")


def vended(body: dict[str, Any]) -> VendedKey | None:
    """The key in the answer to a load of a table, or None where none was given."""
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
    """A client of the store that has nothing but the vended key."""
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
    """A client with the store's own key, to lay out what must not be reached and to take it away again."""
    return boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name=store.region,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
        config=_CONFIG,
    )


def bucket_and_key(location: str) -> tuple[str, str]:
    """``s3://bucket/some/key`` in its two parts."""
    parts = urlsplit(location)
    return parts.netloc, parts.path.lstrip("/")


async def refused(call: Callable[[], Any]) -> Observation:
    """Make a call that the store must refuse for want of rights; any other error is not good enough."""
    try:
        await asyncio.to_thread(call)
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return Observation(status == 403 and code in REFUSALS, f"{status} {code}")
    return Observation(False, "it worked")


async def answered(call: Callable[[], Any], describe: Callable[[Any], tuple[bool, str]]) -> Observation:
    """Make a call that the store must answer; ``describe`` judges the answer."""
    try:
        result = await asyncio.to_thread(call)
    except ClientError as error:
        return Observation(False, f"refused: {error.response.get('Error', {}).get('Code', '')}")
    return Observation(*describe(result))


@dataclass(frozen=True, slots=True)
class Planted:
    """Two objects laid out by the store's owner: one beside the table whose name begins like it, one inside."""

    bucket: str
    sibling: str
    inside: str


def plant(store: ObjectStoreAccess, key: VendedKey) -> Planted:
    """Lay the two objects out, so that what is refused is really there."""
    planted = Planted(key.bucket, f"{key.prefix}-sibling/secret.txt", f"{key.prefix}/data/demonstration.txt")
    owner = owner_client(store)
    for name in (planted.sibling, planted.inside):
        owner.put_object(Bucket=planted.bucket, Key=name, Body=b"not for everybody")
    return planted


def uproot(store: ObjectStoreAccess, planted: Planted) -> None:
    """Take the two objects away again."""
    owner = owner_client(store)
    for name in (planted.sibling, planted.inside):
        owner.delete_object(Bucket=planted.bucket, Key=name)
