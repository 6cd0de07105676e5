# SPDX-License-Identifier: Apache-2.0
"""Clients of object stores on loopback, which an operator's setting must allow."""

from __future__ import annotations

from typing import Any, Final

from gateway.scope.endpoint import ANY_NETWORK, RouteTo
from gateway.scope.profile import IdentityRules
from gateway.storage.connector import Connector
from gateway.storage.files import Files
from gateway.storage.object_files import ObjectFiles
from gateway.storage.provider import FileClient, StorageClient, StorageClients
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.calls import SignedCalls
from gateway.storage.s3.client import S3Sessions
from gateway.storage.s3.stores import OwnRole, S3Stores
from gateway.storage.s3.trials import S3Trials
from gateway.storage.trials import Trials

LOCAL: Final[RouteTo] = Connector(ANY_NETWORK).route


def object_files(
    *,
    route: RouteTo | None = LOCAL,
    own_role: OwnRole | None = None,
    certificates: str | None = None,
    connect_seconds: float = 2.0,
    request_seconds: float = 15.0,
    total_seconds: float = 30.0,
) -> ObjectFiles:
    """Return the files of S3 stores that are reached through `route`."""
    stores = S3Stores(
        own_role=own_role,
        identity=None,
        identity_rules=IdentityRules(),
        connect_seconds=connect_seconds,
        request_seconds=request_seconds,
        certificates=certificates,
        route=route,
    )
    return ObjectFiles(stores, total_seconds=total_seconds)


def s3_trials(*, seconds: float = 15.0) -> S3Trials:
    """Return the canary's requests to S3 stores on loopback."""
    return S3Trials(SignedCalls(route=LOCAL, connect_seconds=2.0, seconds=seconds))


def clients(sts: Sts | Any = None, files: FileClient | Any = None, trials: Trials | None = None) -> StorageClients:
    """Return clients with the S3 sessions of `sts`. Without `trials`, the canary uses `files`."""
    s3 = StorageClient(files=files or object_files(), sessions=S3Sessions(sts), close=lambda: None, trials=trials)
    return StorageClients({"s3": s3})


def files_of(**more: Any) -> Files:
    """Return the files of warehouses on S3; `more` is for `object_files`."""
    return Files(clients(files=object_files(**more)))
