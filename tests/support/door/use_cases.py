# SPDX-License-Identifier: Apache-2.0
"""The use cases that the door admits: their exceptions, and what each method reads."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import msgspec

import gateway.features
from gateway.access.door.door import Door
from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.engine.database import Database
from gateway.db.tuples.delivery import TupleDelivery
from gateway.features.kit import Kit
from gateway.storage.files import Files
from gateway.storage.provider import StorageClients
from gateway.vending.vendor import Vendor

#: Operations without a use case; their permit shows only in the audit.
WITHOUT_USE_CASE = {
    *("GetApiAsset", "GetApiDocument", "GetAuthZenConfiguration", "GetHealth", "GetUiAsset", "ShowApi", "ShowUi"),
}
#: Optional operations, decided together with the operation of the same endpoint.
EXTRAS = {"VendCreationCredentials", "VendGenericTableCreationCredentials"}
#: Requests that are admitted as one operation and then as the other.
ORDERED = {
    name: pair
    for pair in (
        ["FindTasks", "ControlTasks"],
        ["FindTask", "GetTask"],
        ["FindChangeTicket", "GetChangeTicket"],
        ["FindChangeToApprove", "ApproveChange"],
        ["FindChangeToReject", "RejectChange"],
        ["FindRequestableTag", "CreateAccessRequest"],
        ["FindTagOfDryRun", "TryAccessRequest"],
        ["FindAccessRequestToApprove", "ApproveAccessRequest"],
        ["FindAccessRequestToDeny", "DenyAccessRequest"],
        ["FindAccessRequestToEnd", "EndAccess"],
        ["ReadDenial", "ExplainDenial"],
        ["FindGrantsToReview", "ReviewGrants"],
        ["FindActivationToConfirm", "ConfirmBreakGlass"],
        ["FindActivationToEnd", "EndBreakGlass"],
        ["FindActivationToReview", "ReviewBreakGlass"],
    )
    for name in pair
}

#: Operations open to every caller that find a request or an activation. The right on its object decides the operation
#: that follows.
FINDING = {
    "FindAccessRequestToApprove", "FindAccessRequestToDeny", "FindAccessRequestToEnd", "ReadDenial",
    "FindRequestableTag", "FindTagOfDryRun", "FindActivationToConfirm", "FindActivationToEnd", "FindActivationToReview",
}  # fmt: skip

#: Functions without a permit, and why they do not bypass the door. An unnecessary line fails.
EXEMPT = {
    "features.approvals.change_approval.ChangeApproval.concerns": "pure: it tells whether verifiers judge such changes",
    "features.tables.chosen_locations.ChosenLocations.require_allowed": (
        "it only refuses, for every use case that creates"
    ),
    "features.metadata.metadata_files.MetadataFiles.write_one": (
        "for use cases: it takes the row that their permit carries"
    ),
    "features.metadata.metadata_files.MetadataFiles.write_all": "as above",
    "features.metadata.metadata_files.MetadataFiles.read": "as above",
    "features.metadata.metadata_files.MetadataFiles.delete_unnamed": "as above",
    "features.metadata.metadata_files.MetadataFiles.require_empty": "as above",
    "features.metadata.metadata_files.MetadataFiles.refuse_pending": (
        "it only refuses: a file that goes is not to be named"
    ),
    "features.metadata.metadata_files.MetadataFiles.defer_cleanup": "it puts off when a superfluous file is swept",
    "features.metadata.metadata_validation.MetadataValidator.slot": "it waits, and knows nothing",
    "features.metadata.metadata_validation.MetadataValidator.validated": (
        "pure: it reads a document that was read with a permit"
    ),
    "features.credentials.credentials.Credentials.without_credentials": (
        "pure: it reads the address of the store from a row"
    ),
    "features.tables.commit_retry.determine_outcome": "it settles the trail of the permit that comes second",
    "features.credentials.storage_reports.StorageValidator.profile": "pure: it reads what the caller brought",
    "features.credentials.storage_reports.StorageValidator.credential": "as above",
    "features.credentials.storage_reports.StorageValidator.tried": "it tries what its use case was permitted to try",
    "features.credentials.storage_reports.StorageValidator.report": "as above",
    "features.credentials.storage_validation.validate_warehouse_storage": (
        "it tries a profile and a key that the caller brought"
    ),
    "features.events.events.forget": "a command of an operator, who has the database",
    "features.events.events.replay": "as above",
    "features.events.events.retry": "as above",
    "features.live_credentials.live_credentials.find": "as above",
    "features.server.servers.reopen": "as above",
    "features.statistics.statistics.StatisticsKeeper.flush": "it stores counts of requests that the gateway answered",
    "features.statistics.statistics.StatisticsKeeper.run": "as above, until it is cancelled",
}
#: The work of the gateway itself, for which the door admits the system. No handler reaches it (see below).
BACKGROUND = frozenset(
    {
        *("audit.audit_chain", "audit.audit_export", "audit.audit_retention"),
        *("credentials.encryption_keys", "credentials.scope_canary"),
        *("deletion.purge", "engines.probe_expiry", "events.event_delivery"),
        *("principals.former_grantors", "principals.scim_tokens"),
        *("server.housekeeping", "server.model_changes"),
        *("kit", "tasks.worker"),
        *("tuples.drift", "tuples.drift_findings", "tuples.reconcile", "tuples.watch"),
    }
)
REACH = {Kit, Database, TupleDelivery, Door, Files, StorageClients, Vendor, StorageCredentials}


def _modules() -> Iterator[types.ModuleType]:
    """Yield the modules of use cases: all but the routes and the work of the gateway itself."""
    package = gateway.features
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        short = found.name.removeprefix("gateway.features.")
        if short not in BACKGROUND and not short.endswith("routes"):
            yield importlib.import_module(found.name)


def _is_value(kind: type) -> bool:
    """Return True for a class without use cases: a value, an error, or a protocol, which has no instances."""
    is_protocol = getattr(kind, "_is_protocol", False)
    return is_protocol or issubclass(kind, (Exception, msgspec.Struct, Enum)) or dataclasses.is_dataclass(kind)


def _reaches(function: Callable[..., Any]) -> bool:
    """Return True if a function receives a dependency that can change data.

    A connection alone does not count: it belongs to a change that a use case has begun.
    """
    return not set(typing.get_type_hints(function).values()).isdisjoint(REACH)


def offered() -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """Yield (name, function, True for a method) of each public method, and of each public function with such a
    dependency.
    """
    for module in _modules():
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            short = f"{module.__name__.removeprefix('gateway.')}.{name}"
            if inspect.isclass(value) and not _is_value(value):
                for method_name, method in vars(value).items():
                    if not method_name.startswith("_"):
                        yield f"{short}.{method_name}", typing.cast(Callable[..., Any], method), True
            elif inspect.isfunction(value) and _reaches(value):
                yield short, value, False
