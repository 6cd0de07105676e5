# SPDX-License-Identifier: Apache-2.0
"""Each operation that changes a data object is judged by verifiers, or is an exception with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.access.nouns.refs import ObjectType
from gateway.access.operation import ChangeOperation
from tests.support.door.examples import EXAMPLES
from tests.support.door.verified_changes import JUDGED

DATA_OBJECTS: Final = {
    ObjectType.WAREHOUSE,
    ObjectType.NAMESPACE,
    ObjectType.TABLE,
    ObjectType.VIEW,
    ObjectType.GENERIC_TABLE,
}

#: Tags and data policies have managers of their own. Attaching a tag or binding a policy needs their right too.
GOVERNANCE: Final = {ObjectType.TAG, ObjectType.DATA_POLICY}

_GRANTS: Final = "grants have approvers of their own: managed access"
_VENDING: Final = "vends credentials; the object itself is judged when it is created"
_TICKETS: Final = "decides about a change that verifiers judged"
_PROBES: Final = "tests an engine, and changes no object"
_SWITCH: Final = "changes no data and no metadata of a table, and can be undone"
_ADMINISTRATION: Final = "configures the storage or the management of a warehouse, which no verifier can judge"

#: This list may only shrink. An operation that is added must be judged by the verifiers instead.
EXCEPTIONS: Final[Mapping[str, str]] = {
    "ActivateBreakGlass": _GRANTS,
    "ActivateWarehouse": _SWITCH,
    "ApproveAccessRequest": _GRANTS,
    "ApproveChange": _TICKETS,
    "ChangeColumnGrants": _GRANTS,
    "ChangeGenericTableGrants": _GRANTS,
    "ChangeNamespaceGrants": _GRANTS,
    "ChangeTableGrants": _GRANTS,
    "ChangeViewGrants": _GRANTS,
    "ChangeWarehouseGrants": _GRANTS,
    "ConfirmBreakGlass": _GRANTS,
    "ControlTasks": "starts, stops or cancels tasks of a drop that was judged",
    "CreateAccessRequest": _GRANTS,
    "CreateEngineProbe": _PROBES,
    "CreateWarehouse": "a new warehouse is empty, and has no approvers of its own",
    "DeactivateWarehouse": _SWITCH,
    "DenyAccessRequest": _GRANTS,
    "EndAccess": _GRANTS,
    "EndBreakGlass": _GRANTS,
    "RecordEngineProbe": _PROBES,
    "RejectChange": _TICKETS,
    "ReviewBreakGlass": _GRANTS,
    "RunEngineProbe": _PROBES,
    "ReportMetrics": "records what an engine measured",
    "RunScopeCanary": "tests the storage",
    "ReviewGrants": _GRANTS,
    "SetGenericTableProtection": _SWITCH,
    "SetNamespaceManagedAccess": _GRANTS,
    "SetNamespaceProtection": _SWITCH,
    "SetQueueConfig": _ADMINISTRATION,
    "SetTableProtection": _SWITCH,
    "SetViewProtection": _SWITCH,
    "SetWarehouseDeleteProfile": _ADMINISTRATION,
    "SetWarehouseFormatVersionPolicy": _ADMINISTRATION,
    "SetWarehouseManagedAccess": _GRANTS,
    "SetWarehouseManagedBy": _ADMINISTRATION,
    "SetWarehousePolicyLoss": _ADMINISTRATION,
    "SetWarehouseProtection": _SWITCH,
    "UpdateWarehouseStorage": _ADMINISTRATION,
    "UpdateWarehouseStorageCredential": _ADMINISTRATION,
    "VendCreationCredentials": _VENDING,
    "VendGenericTableCreationCredentials": _VENDING,
    "WriteColumnAssignments": _GRANTS,
    "WriteGenericTableAssignments": _GRANTS,
    "WriteNamespaceAssignments": _GRANTS,
    "WriteTableAssignments": _GRANTS,
    "WriteViewAssignments": _GRANTS,
    "WriteWarehouseAssignments": _GRANTS,
}

MOST_EXCEPTIONS: Final = 48


def _changes_data_objects() -> set[str]:
    found = set()
    for operation in (example.operation for example in EXAMPLES if isinstance(example.operation, ChangeOperation)):
        demanded = {demand.on.type for demand in operation.demands()}
        if demanded & GOVERNANCE:
            continue
        if demanded & DATA_OBJECTS or "/v1/warehouse" in operation.endpoint:
            found.add(type(operation).__name__)
    return found


def test_operation_on_a_data_object_is_judged_or_an_exception() -> None:
    missing = _changes_data_objects() - JUDGED - EXCEPTIONS.keys()
    assert not missing, f"call ChangeApproval in the use cases of {sorted(missing)}"


def test_no_exception_is_superfluous() -> None:
    assert not EXCEPTIONS.keys() & JUDGED
    assert EXCEPTIONS.keys() <= _changes_data_objects()


def test_exceptions_only_shrink() -> None:
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS
