# SPDX-License-Identifier: Apache-2.0
"""Each setting of a warehouse that the API can change has a field of `lakegate apply` and an option of a command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

import httpx2
import msgspec
import yaml

import gateway.app  # noqa: F401 - the import registers every operation
from gateway.access.operation import OPERATIONS, ChangeOperation
from gateway.access.operations.task_bodies import WarehouseQueue
from gateway.apply.client import Api
from gateway.apply.document import Warehouse
from gateway.apply.kinds import Executor, desired_state, read_all
from gateway.apply.planner import plan
from gateway.apply.session import Located
from gateway.apply.state import DEFAULTS, Address, Kind, Resource, State
from gateway.apply.warehouses import warehouse_fields, warehouse_settings
from gateway.cli.warehouses import SETTINGS
from gateway.db.tasks.tasks import Queue
from tests.support.apply_documents import NOW

ID: Final = "01990000-0000-7000-8000-00000000000c"
#: Lists of the file that are no settings: objects, or relations of the warehouse to others.
LISTS: Final = {"id", "grants", "tags", "namespaces"}
#: Changes that name a warehouse only, and are no settings of it.
NO_SETTINGS: Final = {
    **dict.fromkeys(("ChangeWarehouseGrants", "WriteWarehouseAssignments"), "the list `grants`"),
    **dict.fromkeys(("AttachWarehouseTag", "DetachWarehouseTag"), "the list `tags`"),
    **dict.fromkeys(("CreateEngineProbe", "RunScopeCanary", "ControlTasks", "UndropTabulars"), "an action"),
    "DeleteWarehouse": "the list `warehouses`",
}
S3: Final = {"type": "s3", "bucket": "lake", "region": "eu", "sts-enabled": False}
ROW: Final = {
    "warehouse-id": ID,
    "name": "lake",
    "storage-profile": S3,
    "storage-credential-type": {"type": "s3", "credential-type": "access-key"},
    **{name: value for name, value in DEFAULTS.items() if name not in ("managed-access", "task-queues")},
}
CREDENTIAL: Final = {
    "credential": {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": "key",
        "secret-access-key": {"env": "LAKEGATE_APPLY_KEY"},
    }
}
SECRET: Final = "a" * 20
STATED: Final[Mapping[str, Any]] = {
    "name": "renamed",
    "status": "inactive",
    "protected": True,
    "managed-access": True,
    "managed-by": "instance-admin",
    "policy-loss": "announce",
    "delete-profile": {"type": "soft", "expiration-seconds": 60, "absent-purge-requested": "keep"},
    "allowed-format-versions": [2, 3],
    "default-format-version": 3,
    "task-queues": {"soft_deletion": {"max-seconds-since-last-heartbeat": 300}},
    "storage": {**S3, "sts-token-validity-seconds": 1200},
    **CREDENTIAL,
}


class Gateway:
    """Answers with the settings of a warehouse, and keeps the changes that it receives."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, Any]] = []

    def api(self) -> Api:
        """Return a client of this gateway."""
        return Api("http://gateway", "token", transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json={"managed-access": False, "queue-config": {}})
        body = msgspec.json.decode(request.content) if request.content else None
        self.changes.append((f"{request.method} {request.url.path}", body))
        return httpx2.Response(200, json={"warehouse-id": ID})


def setting_endpoints() -> dict[str, str]:
    """Return {endpoint: operation} of the changes of a warehouse itself, except its creation."""
    return {
        operation.endpoint: name
        for name, operation in OPERATIONS.items()
        if issubclass(operation, ChangeOperation)
        and "{warehouse_id}" in re.findall(r"\{\w+\}", operation.endpoint)
        and {*re.findall(r"\{\w+\}", operation.endpoint)} <= {"{warehouse_id}", "{queue_name}", "{tag_name}"}
        and name not in NO_SETTINGS
    }


def sent(stated: Mapping[str, Any], present: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """Return the changes that the stated settings need; `present` is None for a warehouse that does not exist."""
    server = Gateway()
    document = {"projects": [{"id": "shop", "name": "Shop", "warehouses": [{"id": ID, "name": "lake", **stated}]}]}
    desired = desired_state(read_all({"shop.yaml": yaml.safe_dump(document)}), now=NOW)
    [address] = [each.address for each in desired.of_kind(Kind.WAREHOUSE)]
    project = Resource(Address(Kind.PROJECT, "shop"), {"name": "Shop"}, id="shop")
    before = {project.address: project}
    located = Located()
    located.add(project.address, "shop")
    if present is not None:
        before[address] = Resource(address, present, id=ID)
        located.add(address, ID)
    planned = plan(desired, State(before))
    executor = Executor(server.api(), State(before), located, secrets=None, variables=lambda _name: SECRET)
    executor.prepare(planned.changes)
    list(executor.run(planned.changes))
    return server.changes


def declared(path: str) -> str:
    """Return the endpoint of a request, as its operation declares it."""
    return re.sub(r"(?<=task-queue/)\w+", "{queue_name}", path.replace(ID, "{warehouse_id}"))


def test_each_change_of_a_warehouse_is_made_by_apply() -> None:
    present = warehouse_fields(Gateway().api(), ROW, queues=True)
    requests = sent(STATED, present) + sent(CREDENTIAL, {**present, "credential": "s3/other"})
    requests += sent({"status": "active"}, {**present, "status": "inactive"})
    assert {declared(path) for path, _ in requests} == set(setting_endpoints())
    assert "SetWarehousePolicyLoss" in setting_endpoints().values()


def test_each_field_of_a_warehouse_is_read_exported_and_an_option_of_the_command() -> None:
    fields = {each.encode_name for each in msgspec.structs.fields(Warehouse)} - LISTS
    assert fields == set(STATED)
    assert fields == {name for name, _ in SETTINGS}
    present = Resource(Address(Kind.WAREHOUSE, "lake"), warehouse_fields(Gateway().api(), ROW, queues=True))
    assert {*warehouse_settings(present), "credential"} == fields
    assert not sent(warehouse_settings(present), present.fields)


def test_a_new_warehouse_gets_each_setting_and_no_request_for_a_default() -> None:
    (creation, body), *later = sent(STATED, None)
    assert creation == "POST /management/v1/warehouse"
    set_later = {declared(path).rpartition("warehouse_id}/")[2] for path, _ in later}
    assert set_later == {
        *("policy-loss", "managed-access", "protection", "deactivate"),
        "task-queue/{queue_name}/config",
    }
    of_creation = {"delete-profile", "managed-by", "allowed-format-versions", "default-format-version"}
    assert {name: body[name] for name in of_creation} == {name: STATED[name] for name in of_creation}
    defaults = {**DEFAULTS, "storage": S3, "task-queues": {"tabular_purge": {}}, **CREDENTIAL}
    assert [path for path, _ in sent(defaults, None)] == [creation]


def test_the_queues_of_the_file_are_those_of_warehouses() -> None:
    assert set(get_args(WarehouseQueue)) == {each.value for each in Queue} - {Queue.TASK_LOG_CLEANUP.value}


def test_a_queue_that_the_file_leaves_out_keeps_its_configuration_and_an_empty_one_is_reset() -> None:
    seconds = {"max-seconds-since-last-heartbeat": 300}
    present = {**warehouse_fields(Gateway().api(), ROW, queues=True), "task-queues.tabular_purge": seconds}
    document = {"task-queues": {"soft_deletion": seconds}}
    [(path, body)] = sent(document, present)
    assert path.endswith("/task-queue/soft_deletion/config")
    assert body == {"queue-config": {}, **seconds}
    [(path, body)] = sent({"task-queues": {"tabular_purge": {}}}, present)
    assert path.endswith("/task-queue/tabular_purge/config")
    assert body == {"queue-config": {}}
