# SPDX-License-Identifier: Apache-2.0
"""Markers that declare from which part of a request an operation's field is read.

    @dataclass(frozen=True)
    class ListTables(ReadOperation):
        namespace: InPath[NamespaceRef]
        page_token: PageToken = None
        return_uuids: Annotated[bool, Query("returnUuids")] = False

`gateway.api.binding` reads the request and describes it in the OpenAPI document by these markers alone. The handler
sets fields without a marker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from gateway.access.nouns.project import ProjectRef
from gateway.access.tuples import Principal

Field = TypeVar("Field")


@dataclass(frozen=True, slots=True)
class Path:
    """Read the value from the path: a reference by the path parameters of its type, an id or text by the parameter
    `name`.

    With `dropped`, dropped tables, views and generic tables that can still be restored are found too.
    """

    name: str = ""
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """Read the value from a query parameter. A bool is `true` or `false`; a tuple is several parameters, or one with
    commas.

    A number above `max_value` is reduced to it. `parse` converts all given values, instead of the conversion by the
    type of the field.
    """

    name: str
    max_value: int | None = None
    parse: Callable[[Sequence[str]], object] | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """Read the value from a request header, whose name is in lower case. Several header lines are joined by commas."""

    name: str


@dataclass(frozen=True, slots=True)
class Body:
    """Read the value from the JSON body, or from one member of it.

    `of` is the type of the body, None if it is the type of the field. `member` is the attribute of the decoded body for
    the field, with dots for an attribute of an attribute. A reference by name gets its warehouse from the path.
    """

    of: type | None = None
    member: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """The body is a form (`application/x-www-form-urlencoded`) of this type. Handlers read it themselves."""

    of: type


@dataclass(frozen=True, slots=True)
class RequestProject:
    """Read the project of a management request from its path, header or query, or from the member `project_id` of its
    body.
    """

    in_body: bool = False


@dataclass(frozen=True, slots=True)
class PageSizeOf:
    """Read the page size from a query parameter, and limit it to the largest page.

    `after` is the parameter with the page token. A request with a token and without a size gets the largest page.
    """

    name: str = "pageSize"
    after: str = "pageToken"


@dataclass(frozen=True, slots=True)
class PrincipalParameters:
    """Read the principal from the query parameters `principalUser` and `principalRole`; None if neither is set.

    The value is also None if it is the caller itself. With `own` it is kept, so that a filter by the caller is not
    lost.
    """

    own: bool = False


Source = Path | Query | Header | Body | Form | RequestProject | PageSizeOf | PrincipalParameters

InPath = Annotated[Field, Path()]
InPathDropped = Annotated[Field, Path(dropped=True)]
InBody = Annotated[Field, Body()]
OfRequest = Annotated[ProjectRef, RequestProject()]
PageToken = Annotated[str | None, Query("pageToken")]
PageSize = Annotated[int | None, PageSizeOf()]
About = Annotated[Principal | None, PrincipalParameters()]
OfPrincipal = Annotated[Principal | None, PrincipalParameters(own=True)]
