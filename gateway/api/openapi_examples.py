# SPDX-License-Identifier: Apache-2.0
"""Generate examples of request bodies from their types, so that every body has one and none is out of date.

A test decodes every example as the gateway decodes a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

_ID: Final = "01a1fe72-4e99-725d-80d8-8afc12f93d6e"

#: Realistic values by the name of a member.
_BY_NAME: Final[Mapping[str, Any]] = {
    "bucket": "lake",
    "credential-type": "access-key",
    "description": "Analysts of the sales team",
    "email": "alice@example.com",
    "engine": "oidc~trino",
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "endpoint": "https://s3.example.com",
    "id": "oidc~alice",
    "location": "s3://lake/sales/orders",
    "metadata-location": "s3://lake/sales/orders/metadata/00000-01a1fe72.metadata.json",
    "name": "orders",
    "namespace": ["sales"],
    "project-name": "Sales",
    "region": "eu-central-1",
    "role": _ID,
    "search": "sales",
    "user": "oidc~alice",
    "subject_token": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl",
    "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
    "warehouse-name": "lake",
}


def example_of(kind: Any) -> Any:
    """Return a JSON value that decodes as `kind`: its required members, else the first one. Lists have one entry."""
    return _example(inspect.type_info(kind), None, 0)


def _example(info: inspect.Type, name: str | None, depth: int) -> Any:
    match info:
        case inspect.Metadata(type=described, extra=extra):
            return extra["example"] if extra and "example" in extra else _example(described, name, depth)
        case inspect.CustomType() | inspect.AnyType() | inspect.RawType():
            return _BY_NAME.get(name or "", {})
        case inspect.StructType():
            return _struct(info, depth)
        case inspect.UnionType(types=types):
            return _example(_chosen(types, name), name, depth)
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            known = _BY_NAME.get(name or "")
            return (
                known if isinstance(known, list) else [] if depth > 4 else [_example(info.item_type, None, depth + 1)]
            )
        case inspect.DictType():
            return {"owner": "alice"} if isinstance(info.value_type, inspect.StrType) else {}
        case _:
            return _scalar(info, name)


def _chosen(types: tuple[inspect.Type, ...], name: str | None) -> inspect.Type:
    """Return a member of a union: the string type if there is a text for this name, else the first that is not null."""
    real = [each for each in types if not isinstance(each, inspect.NoneType)]
    known = _BY_NAME.get(name or "")
    return next((each for each in real if isinstance(known, str) and isinstance(each, inspect.StrType)), real[0])


def _struct(info: inspect.StructType, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {} if info.tag_field is None else {info.tag_field: info.tag}
    fields = [each for each in info.fields if each.required] or [each for each in info.fields][:1]
    return made | {each.encode_name: _example(each.type, each.encode_name, depth + 1) for each in fields}


def _scalar(info: inspect.Type, name: str | None) -> Any:
    match info:
        case inspect.BoolType():
            return True
        case inspect.IntType(ge=least):
            return least or 1
        case inspect.FloatType():
            return 1.0
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.EnumType(cls=members):
            return next(iter(members)).value
        case inspect.UUIDType():
            return _ID
        case inspect.DateTimeType():
            return "2030-01-01T00:00:00Z"
        case inspect.StrType():
            known = _BY_NAME.get(name or "")
            return known if isinstance(known, str) else "text"
        case _:
            return None


def decodes(kind: Any, value: Any) -> bool:
    """Return True if `value` decodes as `kind`."""
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=kind)
    except msgspec.ValidationError:
        return False
    return True
