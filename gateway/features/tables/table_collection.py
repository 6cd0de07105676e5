# SPDX-License-Identifier: Apache-2.0
"""The components that the use cases of tables and of generic tables share."""

from __future__ import annotations

from typing import TypedDict, Unpack

from gateway.access.door.door import Door
from gateway.db.engine.database import Database
from gateway.db.tables.documents import Documents
from gateway.db.tuples.delivery import TupleDelivery
from gateway.features.approvals.change_approval import ChangeApproval
from gateway.features.contents.lists import Lists
from gateway.features.credentials.credentials import Credentials
from gateway.features.metadata.metadata_files import MetadataFiles
from gateway.features.tables.chosen_locations import ChosenLocations


class Components(TypedDict):
    """The components: rows, decisions, delivery of grants, files, credentials, lists, documents and approval."""

    database: Database
    door: Door
    delivery: TupleDelivery
    files: MetadataFiles
    credentials: Credentials
    lists: Lists
    documents: Documents
    chosen: ChosenLocations
    approval: ChangeApproval


class TableCollection:
    """Hold the components."""

    def __init__(self, **components: Unpack[Components]) -> None:
        self._approval = components["approval"]
        self._chosen = components["chosen"]
        self._database = components["database"]
        self._door = components["door"]
        self._delivery = components["delivery"]
        self._files = components["files"]
        self._credentials = components["credentials"]
        self._lists = components["lists"]
        self._documents = components["documents"]
