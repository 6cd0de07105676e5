# SPDX-License-Identifier: Apache-2.0
"""Ask the gateway what a user may see of a table, for the commands that show it to the owner of the data policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import click

from gateway.cli.management import Management, printable, warehouse_named


@dataclass(frozen=True, slots=True)
class Preview:
    """Hold the `read-restrictions` of a user as JSON, and the metadata file to whose schemas they belong."""

    read_restrictions: Any
    metadata_location: str


def preview_of(management: Management, warehouse: str, table: tuple[str, ...], principal: str) -> Preview:
    """Return the preview for a user. A refusal, and a user that may not read the table, end the command."""
    if not all(principal.partition("~")):
        raise click.UsageError("--as must be the id of a user, such as oidc~ann")
    if len(table) < 2 or not all(table):
        raise click.UsageError("--table must have the form NAMESPACE.TABLE")
    id = warehouse_named(management, f"warehouse/{warehouse}", warehouse).id
    path = f"/warehouse/{id}/table/{_id_of(management, id, table)}/data-policies/preview"
    answer = management.send("GET", path, query={"principalUser": principal}).json()
    if not answer["allowed"]:
        raise click.ClickException(f"{printable(principal)} may not read {printable('.'.join(table))}")
    return Preview(answer.get("read-restrictions", {}), answer["metadata-location"])


def _id_of(management: Management, warehouse_id: str, table: tuple[str, ...]) -> str:
    """Return the id of a table. A table that the caller does not see ends the command."""
    namespace = quote("\x1f".join(table[:-1]), safe="")
    query = {"returnUuids": "true"}
    while True:
        path = f"/v1/{warehouse_id}/namespaces/{namespace}/tables"
        page = management.send("GET", path, query=query, below="/catalog").json()
        for each, id in zip(page["identifiers"], page["table-uuids"], strict=True):
            if each["name"].casefold() == table[-1].casefold():
                return str(id)
        if not page.get("next-page-token"):
            raise click.ClickException(f"you see no table {printable('.'.join(table))}. Check its name")
        query["pageToken"] = page["next-page-token"]
