# SPDX-License-Identifier: Apache-2.0
"""Generate the JSON Schema of the events of changes, `docs/events.schema.json`.

Run `python -m gateway.access.events.event_schema` after changing a declaration of an event or a body of the catalog
protocol. A test fails if the file is out of date.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import NoneType
from typing import Any, Final, get_type_hints

import msgspec

from gateway.access import operations
from gateway.access.demand import Fact
from gateway.access.events.change_event import ChangeEvent, EventData, EventDeclaration, EventPerTarget, type_of
from gateway.access.events.event_building import BREAK_GLASS, CREDENTIALS_VENDED, POLICY_LOST, IssuedData
from gateway.access.events.unrequested_events import (
    GRANT_EXPIRED,
    MODEL_ACTIVATED,
    MODEL_RECORDED,
    ExpiredGrantData,
    ModelData,
)
from gateway.access.nouns.refs import ObjectType
from gateway.access.operation import OPERATIONS, UNROUTED, ChangeOperation, SystemTask
from gateway.iceberg.codec import plain_descriptions
from gateway.iceberg.wire import RenameRequest

SCHEMA_FILE: Final = Path(__file__).resolve().parents[3] / "docs" / "events.schema.json"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: Final = "#/$defs/{name}"
#: Columns are left out, because changes of columns are events of their tables. The further objects are not in the
#: relationship model.
_OBJECTS: Final = (
    *(type.value for type in ObjectType if type is not ObjectType.COLUMN),
    "access_request", "scim_user", "scim_group", "authorization_model",
)  # fmt: skip

_TEXT: Final[dict[str, Any]] = {"type": "string", "minLength": 1}
_NUMBER: Final[dict[str, Any]] = {"type": "string", "pattern": "^[0-9]+$"}
_ENVELOPE: Final[dict[str, dict[str, Any]]] = {
    "specversion": {"const": "1.0"},
    "id": {"type": "string", "format": "uuid", "description": "A UUIDv7. Duplicates of one event have the same id."},
    "source": {"type": "string", "pattern": "^uri:iceberg-catalog-service:"},
    "time": {"type": "string", "format": "date-time"},
    "datacontenttype": {"const": "application/json"},
    "objecttype": {"enum": list(_OBJECTS)},
    "objectid": _TEXT,
    "projectid": _TEXT,
    "warehouseid": _TEXT,
    "prefix": _TEXT,
    "namespace": _TEXT,
    "name": _TEXT,
    "tabulartype": {"enum": ["table", "view", "generic_table"]},
    "tabularid": _TEXT,
    "actor": {"type": "string", "contentMediaType": "application/json"},
    "traceid": {"type": "string", "minLength": 1, "description": "The id of the request."},
    "numevents": {**_NUMBER, "description": "The number of events of the same change."},
    "sequencenumber": {**_NUMBER, "description": "The place among the events of the same change, from 0."},
    "contentsleftout": {
        **_NUMBER,
        "description": "The number of dropped or moved objects without an event of their own.",
    },
    "dataleftout": {**_NUMBER, "description": "The size in bytes of data that were too large; `data` is then null."},
}
_REQUIRED: Final = (
    "specversion", "id", "source", "type", "time", "objecttype", "objectid", "actor", "traceid", "numevents",
    "sequencenumber",
)  # fmt: skip


def declared_types() -> dict[str, list[tuple[EventData, Any]]]:
    """Return (source of the data, Python type of the data) for every event type, without duplicates."""
    for module in iter_modules(operations.__path__):
        import_module(f"{operations.__name__}.{module.name}")
    types: dict[str, list[tuple[EventData, Any]]] = {
        CREDENTIALS_VENDED: [(EventData.BODY, IssuedData)],
        GRANT_EXPIRED: [(EventData.BODY, ExpiredGrantData)],
        MODEL_RECORDED: [(EventData.BODY, ModelData)],
        MODEL_ACTIVATED: [(EventData.BODY, ModelData)],
        POLICY_LOST: [(EventData.FACTS, NoneType)],
        BREAK_GLASS: [(EventData.FACTS, NoneType)],
        # The event of a renamed view has null as its data, as in the reference system. The event of a move of its
        # namespace has both names.
        "renameView": [(EventData.BODY, RenameRequest)],
    }
    for operation in sorted((*OPERATIONS.values(), *UNROUTED.values()), key=lambda each: each.__name__):
        if not issubclass(operation, (ChangeOperation, SystemTask)):
            continue
        for name, content in _declared(operation.event, operation.__name__):
            entry = (content, _body_type(operation) if content is EventData.BODY else NoneType)
            if entry not in types.setdefault(name, []):
                types[name].append(entry)
    return types


def _declared(event: EventDeclaration, operation: str) -> Iterator[tuple[str, EventData]]:
    """Yield each event type and data source that a declaration announces, including those of a transaction's parts."""
    if isinstance(event, ChangeEvent):
        yield type_of(event.type, operation), event.data
    elif isinstance(event, EventPerTarget):
        yield type_of(event.type, operation), EventData.NOTHING


def _body_type(operation: type[ChangeOperation] | type[SystemTask]) -> Any:
    if issubclass(operation, ChangeOperation) and operation.event_body is not ChangeOperation.event_body:
        return get_type_hints(operation.event_body)["return"]
    return get_type_hints(operation)["request"]


def schema() -> str:
    """Return the JSON Schema of all events in structured mode, as text."""
    types = declared_types()
    bodies = sorted({body for each in types.values() for _, body in each if body is not NoneType}, key=repr)
    references, definitions = msgspec.json.schema_components(bodies, ref_template=_REFERENCE)
    found = dict(zip(bodies, references, strict=True))
    (facts,), _ = msgspec.json.schema_components([dict[str, Fact]])
    variants = []
    for name in sorted(types):
        data = [{"type": "null"}]
        for content, body in types[name]:
            if content is EventData.FACTS:
                data.append({"$ref": _REFERENCE.format(name="Facts")})
            elif content is EventData.BODY:
                data.append(found[body])
        variants.append({"properties": {"type": {"const": name}, "data": {"anyOf": data}}})
    whole = {
        "$schema": _DRAFT,
        "title": "Events of changes",
        "type": "object",
        "properties": {**_ENVELOPE, "type": {"enum": sorted(types)}},
        "required": list(_REQUIRED),
        "propertyNames": {"pattern": "^[a-z0-9]{1,20}$"},
        "oneOf": variants,
        "$defs": {**definitions, "Facts": facts},
    }
    return json.dumps(plain_descriptions(whole), indent=2, sort_keys=True) + "\n"


def main() -> None:
    """Write the schema to its file."""
    SCHEMA_FILE.write_text(schema(), encoding="utf-8")


if __name__ == "__main__":
    main()
