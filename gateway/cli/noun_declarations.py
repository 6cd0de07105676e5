# SPDX-License-Identifier: Apache-2.0
"""The card of each kind of objects for the command line, with the options and the bodies of creations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from gateway.apply.state import Kind
from gateway.cli.exit_codes import ExitCode, Failure
from gateway.cli.noun_cards import (
    Namespaces,
    New,
    NounCard,
    OfServer,
    Projects,
    Roles,
    Tabulars,
    Tags,
    Values,
    Warehouses,
    pairs,
)


def _option(name: str, help: str, **settings: Any) -> Callable[[], click.Option]:
    return lambda: click.Option([f"--{name}"], help=help, **settings)


def _schema(values: Values) -> dict[str, Any]:
    """Return the schema of the options `--column NAME:TYPE`."""
    fields = []
    for number, each in enumerate(values.get("column", ()), 1):
        name, colon, type = each.rpartition(":")
        if not colon or not name or not type:
            raise Failure(f"{each!r} is not of the form NAME:TYPE, such as id:long", ExitCode.USAGE)
        fields.append({"id": number, "name": name, "type": type, "required": False})
    return {"type": "struct", "schema-id": 0, "fields": fields}


def _project_body(name: str, values: Values) -> dict[str, Any]:
    return {"project-name": name, **({"project-id": values["id"]} if "id" in values else {})}


def _user_body(name: str, values: Values) -> dict[str, Any]:
    kept = {key: values[key] for key in ("email",) if key in values}
    return {"id": name, "name": values.get("full_name", name), "user-type": values.get("type", "human"), **kept}


def _named_body(name: str, values: Values) -> dict[str, Any]:
    return {"name": name, **values}


def _table_body(name: str, values: Values) -> dict[str, Any]:
    return {"name": name, "schema": _schema(values), "properties": pairs(values.get("property", ()))}


def _view_body(name: str, values: Values) -> dict[str, Any]:
    sql = {"type": "sql", "sql": values["sql"], "dialect": values["dialect"]}
    version = {
        "version-id": 1,
        "timestamp-ms": 0,
        "schema-id": 0,
        "summary": {},
        "representations": [sql],
        "default-namespace": [],
    }
    return {"name": name, "schema": _schema(values), "view-version": version, "properties": {}}


def _generic_body(name: str, values: Values) -> dict[str, Any]:
    return {"name": name, "format": values["table_format"], "properties": pairs(values.get("property", ()))}


_COLUMN: Final = _option("column", "NAME:TYPE, such as id:long. May be repeated.", multiple=True, required=True)
_PROPERTY: Final = _option("property", "NAME=VALUE. May be repeated.", multiple=True)
_DESCRIPTION: Final = _option("description", "Text for people.")
_RESTORED: Final = (
    "If the warehouse keeps dropped objects, `lakegate deleted list` shows until when `lakegate undrop` restores it."
)
_FORCE: Final = {"force": "Override the protection."}

_OF_TABULARS: Final[Mapping[str, Any]] = {
    "columns": ("protected",),
    "rename": "",
    "containers": (Kind.NAMESPACE, Kind.WAREHOUSE),
    "container_form": "WAREHOUSE[/NAMESPACE]",
    "consequence": _RESTORED,
}
_PURGE: Final = {"purge": "Delete the files too.", **_FORCE}

_ALL: Final[tuple[NounCard, ...]] = (
    Projects(
        kind=Kind.PROJECT,
        columns=(),
        named="sales",
        rename="/rename",
        new=New(
            "Create a project.",
            "Example: lakegate projects create sales",
            _project_body,
            (_option("id", "Id of the project. Default: a new one."),),
        ),
        consequence="A project with warehouses is not deleted.",
    ),
    Warehouses(
        kind=Kind.WAREHOUSE,
        columns=("status", "protected", "managed-by"),
        named="demo",
        rename="/rename",
        consequence="A warehouse with contents is not deleted. Its files stay in the store.",
        delete_flags=_FORCE,
    ),
    Namespaces(
        kind=Kind.NAMESPACE,
        named="demo/hr",
        rename="/move",
        containers=(Kind.WAREHOUSE,),
        container_form="WAREHOUSE",
        new=New("Create a namespace.", "Example: lakegate namespaces create demo/hr", _named_body, (_PROPERTY,)),
        consequence="A namespace with contents is deleted only with --recursive.",
        delete_flags={"recursive": "Delete its contents too.", **_FORCE},
    ),
    Tabulars(
        kind=Kind.TABLE,
        named="demo/hr.people",
        new=New(
            "Create an empty table.",
            "Example: lakegate tables create demo/hr.people --column id:long --column name:string",
            _table_body,
            (_COLUMN, _PROPERTY),
        ),
        delete_flags=_PURGE,
        **_OF_TABULARS,
    ),
    Tabulars(
        kind=Kind.VIEW,
        named="demo/hr.names",
        new=New(
            "Create a view.",
            "Example: lakegate views create demo/hr.names --column name:string --sql 'SELECT name FROM hr.people'",
            _view_body,
            (
                _COLUMN,
                _option("sql", "The query of the view.", required=True),
                _option("dialect", "The dialect of the query.", default="spark", show_default=True),
            ),
        ),
        delete_flags=_FORCE,
        **_OF_TABULARS,
    ),
    Tabulars(
        kind=Kind.GENERIC_TABLE,
        named="demo/hr.files",
        root="/lakekeeper",
        new=New(
            "Create a generic table.",
            "Example: lakegate generic-tables create demo/hr.files --table-format lance",
            _generic_body,
            (_option("table-format", "Format of the files, such as lance.", required=True), _PROPERTY),
        ),
        delete_flags=_PURGE,
        **_OF_TABULARS,
    ),
    Roles(
        kind=Kind.ROLE,
        columns=("description", "provider-id"),
        named="analysts",
        rename="",
        new=New("Create a role.", "Example: lakegate roles create analysts", _named_body, (_DESCRIPTION,)),
        consequence="Its members lose the access that they have by it.",
    ),
    OfServer(
        kind=Kind.USER,
        columns=("full-name", "user-type", "email"),
        named="oidc~bob",
        new=New(
            "Register a user before the first login. The name is the id: provider, tilde, subject of tokens.",
            "Example: lakegate users create oidc~bob --full-name Bob --email bob@example.com",
            _user_body,
            (
                _option("full-name", "Name in lists. Default: the id."),
                _option("email", "Email address."),
                _option("type", "Type.", type=click.Choice(["human", "application"]), default="human"),
            ),
        ),
        consequence="The user loses all grants.",
    ),
    Tags(
        kind=Kind.TAG,
        columns=("value-kind", "scope", "description"),
        named="pii",
        rename="",
        consequence="Data policies that are bound to it do not apply by it any more.",
    ),
    NounCard(
        kind=Kind.DATA_POLICY,
        columns=("version", "applies-to", "description"),
        named="mask-email",
        consequence="What it hides can be read afterwards.",
        delete_flags={"force": "Delete it also if it is bound."},
    ),
    NounCard(
        kind=Kind.MAPPING_TABLE,
        columns=("description",),
        named="regions",
        new=New(
            "Create a mapping table.", "Example: lakegate mapping-tables create regions", _named_body, (_DESCRIPTION,)
        ),
        consequence="Tests of row filters that use it are false from then on.",
    ),
)

#: The cards by the name of their group.
CARDS: Final[Mapping[str, NounCard]] = {each.plural: each for each in _ALL}
