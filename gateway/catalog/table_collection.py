# SPDX-License-Identifier: Apache-2.0
"""The components that the use cases of tables and of generic tables share."""

from __future__ import annotations

from gateway.access.door import Door
from gateway.catalog.change_approval import ChangeApproval
from gateway.catalog.chosen_locations import ChosenLocations
from gateway.catalog.credentials import Credentials
from gateway.catalog.lists import Lists
from gateway.catalog.metadata_files import MetadataFiles
from gateway.db.delivery import TupleDelivery
from gateway.db.documents import Documents
from gateway.db.engine import Database


class TableCollection:
    """Hold the components: rows, decisions, delivery of grants, files, credentials, lists, documents and approval."""

    def __init__(
        self,
        *,
        database: Database,
        door: Door,
        delivery: TupleDelivery,
        files: MetadataFiles,
        credentials: Credentials,
        lists: Lists,
        documents: Documents,
        chosen: ChosenLocations,
        approval: ChangeApproval,
    ) -> None:
        self._approval = approval
        self._chosen = chosen
        self._database = database
        self._door = door
        self._delivery = delivery
        self._files = files
        self._credentials = credentials
        self._lists = lists
        self._documents = documents
