# SPDX-License-Identifier: Apache-2.0
"""The components that the use cases of tables and of generic tables share."""

from __future__ import annotations

from gateway.features.approvals.change_approval import ChangeApproval
from gateway.features.contents.lists import Lists
from gateway.features.credentials.credentials import Credentials
from gateway.features.kit import Kit, UseCases
from gateway.features.metadata.metadata_files import MetadataFiles
from gateway.features.tables.chosen_locations import ChosenLocations


class TableCollection(UseCases):
    """Base of the use cases of tables and of generic tables."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._approval = ChangeApproval(kit)
        self._chosen = ChosenLocations(kit)
        self._files = MetadataFiles(kit)
        self._credentials = Credentials(kit)
        self._lists = Lists(kit)
        self._documents = kit.documents
