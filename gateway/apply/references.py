# SPDX-License-Identifier: Apache-2.0
"""Names of objects as text, such as `table/demo/hr.people`: read them, write them, and find the objects.

| text | object |
|---|---|
| `server` | the server |
| `project`, `project/NAME` | the project of the command, or another one |
| `warehouse/WAREHOUSE` | a warehouse |
| `namespace/WAREHOUSE/LEVEL.LEVEL` | a namespace, with dots between its levels |
| `table/WAREHOUSE/NAMESPACE.NAME` | a table; `view` and `generic-table` likewise |
| `column/WAREHOUSE/NAMESPACE.NAME/COLUMN` | a column of a table |
| `role/NAME`, `tag/NAME`, `data-policy/NAME`, `mapping-table/NAME` | an object of the project |
| `user/ID`, `user/EMAIL` | a user |

An id can replace each name: `table/demo/<id>`. A part that contains a dot, a slash or a quotation mark is in quotation
marks, and quotation marks in it are doubled: `table/demo/hr."a.b"`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from gateway.apply import ApplyError
from gateway.apply.client import NOT_FOUND, Api, ApiError
from gateway.apply.kinds import KINDS
from gateway.apply.session import MANAGEMENT, Located, Session, is_uuid, usual_id
from gateway.apply.state import SERVER, Address, Kind, namespace_address
from gateway.iceberg.identifiers import fold

#: Kinds in a namespace.
TABULARS: Final = (Kind.TABLE, Kind.VIEW, Kind.GENERIC_TABLE)
_OF_PROJECT: Final = (Kind.ROLE, Kind.TAG, Kind.DATA_POLICY, Kind.MAPPING_TABLE)
_IN_WAREHOUSE: Final = (Kind.NAMESPACE, *TABULARS, Kind.COLUMN)

#: Every kind that a reference can name.
KINDS_OF_REFERENCES: Final = (Kind.SERVER, Kind.PROJECT, Kind.WAREHOUSE, *_IN_WAREHOUSE, *_OF_PROJECT, Kind.USER)

_FORMS: Final = {
    Kind.NAMESPACE: "WAREHOUSE/LEVEL.LEVEL",
    Kind.COLUMN: "WAREHOUSE/NAMESPACE.NAME/COLUMN",
    Kind.USER: "ID or user/EMAIL",
    **dict.fromkeys(TABULARS, "WAREHOUSE/NAMESPACE.NAME"),
}
_PART: Final = re.compile(r'"((?:[^"]|"")*)"|([^"./][^"./]*)')
_SIMPLE: Final = re.compile(r'[^"./]+')


class InvalidReference(ApplyError):
    """The text does not name an object."""


class NotFound(ApplyError):
    """The object does not exist, or the caller may not see it. Both have the same message."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"you see no {text}. Check the name, and the project in --project. An object that you may not see "
            "looks the same."
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """The kind of an object, and its names from the outside to the inside.

    `warehouse` is None outside of warehouses. `names` are the levels of a namespace, and then the name. A column is in
    `column`.
    """

    kind: Kind
    names: tuple[str, ...] = ()
    warehouse: str | None = None
    column: str | None = None

    def __str__(self) -> str:
        if self.kind is Kind.USER:
            return f"{self.kind}/{self.names[0]}"
        path = ".".join(map(quoted, self.names))
        parts = (None if self.warehouse is None else quoted(self.warehouse), path or None)
        column = None if self.column is None else quoted(self.column)
        return "/".join([self.kind.value, *(each for each in (*parts, column) if each is not None)])


def quoted(name: str) -> str:
    """Return a part of a reference, in quotation marks if it needs them."""
    return name if _SIMPLE.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def parse_reference(text: str, *, kind: Kind | None = None) -> Reference:
    """Return the object that a text names. With `kind`, its kind at the beginning of the text may be missing.

    Raises InvalidReference.
    """
    start, _, rest = text.partition("/")
    if start in KINDS_OF_REFERENCES and kind in (None, start):
        found = Kind(start)
    elif kind is not None:
        found, rest = kind, text
    else:
        kinds = ", ".join(KINDS_OF_REFERENCES)
        raise InvalidReference(
            f"{text!r} names no object. Write its type, a slash and its name, such as table/demo/hr.people, "
            f"warehouse/demo or role/analysts. The types are {kinds}."
        )
    return _read(found, rest, text)


def _read(kind: Kind, rest: str, text: str) -> Reference:
    """Return the reference of this kind. `rest` follows the kind. Raises InvalidReference."""
    if kind is Kind.SERVER or (kind is Kind.PROJECT and not rest):
        if rest:
            raise _invalid(kind, text)
        return Reference(kind)
    if kind is Kind.USER:
        if not rest:
            raise _invalid(kind, text)
        return Reference(kind, (rest,))
    if kind not in _IN_WAREHOUSE:
        # The names of these objects may contain dots and slashes, so they need no quotation marks.
        name = rest if not rest.startswith('"') else ".".join(_path(kind, rest, text))
        if not name:
            raise _invalid(kind, text)
        return Reference(kind, (), name) if kind is Kind.WAREHOUSE else Reference(kind, (name,))
    parts = _slashes(rest)
    column = parts.pop() if kind is Kind.COLUMN and len(parts) == 3 else None
    if len(parts) != 2 or (column is None) == (kind is Kind.COLUMN):
        raise _invalid(kind, text)
    [warehouse] = _path(kind, parts[0], text, single=True)
    names = _path(kind, parts[1], text)
    if kind is not Kind.NAMESPACE and len(names) < 2 and not is_uuid(names[0]):
        raise _invalid(kind, text)
    last = None if column is None else ".".join(_path(kind, column, text))
    return Reference(kind, names, warehouse, last)


def _slashes(text: str) -> list[str]:
    """Split a text at slashes outside of quotation marks."""
    return [each.replace("\0", "/") for each in re.sub(r'"[^"]*"', _hide, text).split("/")]


def _hide(found: re.Match[str]) -> str:
    return found[0].replace("/", "\0")


def _path(kind: Kind, text: str, whole: str, *, single: bool = False) -> tuple[str, ...]:
    """Return the parts of a text between dots outside of quotation marks. With `single`, dots do not separate."""
    if single and not text.startswith('"'):
        parts, at = ([text] if text else []), len(text)
    else:
        parts, at = [], 0
        while found := _PART.match(text, at):
            parts.append(found[1].replace('""', '"') if found[1] is not None else found[2])
            at = found.end()
            if at == len(text) or text[at] != ".":
                break
            at += 1
    if not parts or at != len(text) or text.endswith(".") and not text.endswith('"') or "" in parts:
        raise _invalid(kind, whole)
    return tuple(parts)


def _invalid(kind: Kind, text: str) -> InvalidReference:
    form = "server" if kind is Kind.SERVER else f"{kind}/{_FORMS.get(kind, 'NAME')}"
    return InvalidReference(
        f"{text!r} does not name a {kind}. Write {form}. A name with a dot, a slash or a quotation mark is in "
        'quotation marks, such as table/demo/hr."a.b".'
    )


class Finder:
    """Find the objects of references for one caller. `project` is an id or a name, or None for the default project.

    `session` has the ids of all found objects.
    """

    def __init__(self, api: Api, project: str | None = None) -> None:
        self.session = Session(api, Located())
        self.session.located.add(SERVER, "")
        self._given = project
        self._project: Address | None = None

    def project(self) -> Address:
        """Return the address of the project of the command. Raises NotFound and ApiError."""
        if self._project is None:
            # Without a project in a request, the gateway uses the default project.
            self._project = self._add(Address(Kind.PROJECT, ""), "")
            if self._given is not None:
                self._project = self._named_project(self._given)
        return self._project

    def find(self, reference: Reference) -> Address:
        """Return the address of an object, whose id the session then has. Raises NotFound and ApiError."""
        match reference.kind:
            case Kind.SERVER:
                return SERVER
            case Kind.PROJECT:
                return self._named_project(reference.names[0]) if reference.names else self.project()
            case Kind.USER:
                return self._user(reference)
            case Kind.WAREHOUSE:
                return self.warehouse(reference)
            case Kind.NAMESPACE:
                return self._namespace(reference)
            case Kind.COLUMN:
                table = self._tabular(Reference(Kind.TABLE, reference.names, reference.warehouse))
                return self._add(Address(Kind.COLUMN, reference.column or "", table), "")
            case Kind.TABLE | Kind.VIEW | Kind.GENERIC_TABLE:
                return self._tabular(reference)
        return self._in_list(reference, self.project(), reference.names[0])

    def warehouse(self, reference: Reference) -> Address:
        """Return the address of the warehouse of a reference. Raises NotFound and ApiError."""
        name = reference.warehouse or ""
        return self._in_list(Reference(Kind.WAREHOUSE, (), name), self.project(), name)

    def rows(self, kind: Kind, on: Address) -> Iterator[tuple[Address, str, Any]]:
        """Yield (address, id, entry) of all objects of a kind in an object. Raises ApiError."""
        yield from KINDS[kind].rows(self.session, on)

    def _add(self, address: Address, id: str) -> Address:
        self.session.located.add(address, id)
        return address

    def _in_list(self, reference: Reference, on: Address, name: str) -> Address:
        """Return the object with this name or id in its list. A text in the form of a UUID is always an id."""
        noun = KINDS[reference.kind]
        wanted = usual_id(name) if is_uuid(name) else None
        same: Callable[[Address, str], bool] = (
            (lambda address, id: id == wanted) if wanted else lambda address, id: address.name == noun.key(name)
        )
        for address, id, _ in self.rows(reference.kind, on):
            if same(address, id):
                return self._add(address, id)
        raise NotFound(str(reference))

    def _named_project(self, name: str) -> Address:
        for address, id, _ in self.rows(Kind.PROJECT, SERVER):
            if name in (id, address.name):
                return self._add(address, id)
        raise NotFound(str(Reference(Kind.PROJECT, (name,))))

    def _user(self, reference: Reference) -> Address:
        """Return the user with this id, or with this email or name if only one has it. Raises InvalidReference."""
        [name] = reference.names
        address = Address(Kind.USER, name)
        if "~" in name:
            return self._add(address, name)
        found = self.session.api.ask(f"{MANAGEMENT}/search/user", {"search": name[:64]})["users"]
        ids = [each["id"] for each in found if name in (each.get("email"), each["name"])]
        if len(ids) > 1:
            raise InvalidReference(f"{reference} could be {', '.join(f'user/{each}' for each in ids)}. Give the id.")
        if not ids:
            raise NotFound(str(reference))
        return self._add(Address(Kind.USER, ids[0]), ids[0])

    def _namespace(self, reference: Reference) -> Address:
        """Return the namespace with these levels, or with this id if there is one level in the form of a UUID."""
        warehouse = self.warehouse(reference)
        if len(reference.names) == 1 and is_uuid(reference.names[0]):
            return self._in_list(reference, warehouse, reference.names[0])
        address = namespace_address(warehouse, reference.names)
        found = self.session.api.find(self.session.located.namespace_path(address))
        if found is None:
            raise NotFound(str(reference))
        return self._add(address, found["properties"]["namespace_id"])

    def _tabular(self, reference: Reference) -> Address:
        if len(reference.names) == 1:
            # The id alone identifies the object. Its namespace stays unknown.
            warehouse = self.warehouse(reference)
            return self._add(Address(reference.kind, reference.names[0], warehouse), usual_id(reference.names[0]))
        *levels, name = reference.names
        # Objects are listed even for callers that may not read the properties of the namespace.
        namespace = namespace_address(self.warehouse(reference), levels)
        try:
            for address, id, _ in self.rows(reference.kind, namespace):
                if fold(address.name) == fold(name):
                    return self._add(address, id)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
        raise NotFound(str(reference))


def object_of(finder: Finder, address: Address) -> dict[str, dict[str, str]]:
    """Return an object in the form of questions, such as `{"table": {"warehouse-id": …, "table-id": …}}`.

    Raises InvalidReference for kinds that have no questions.
    """
    located, kind = finder.session.located, address.kind
    if kind in (Kind.COLUMN, Kind.USER, Kind.MAPPING_TABLE):
        raise InvalidReference(f"a {kind} has no actions of its own. Ask about its table, the server or the project.")
    if kind is Kind.SERVER:
        return {"server": {}}
    if kind is Kind.PROJECT:
        id = located.id(address)
        return {"project": {"project-id": id} if id else {}}
    fields = {f"{kind}-id": located.id(address)}
    if kind in TABULARS:
        fields["warehouse-id"] = located.id(address.within(Kind.WAREHOUSE))
    return {str(kind): fields}
