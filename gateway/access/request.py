# SPDX-License-Identifier: Apache-2.0
"""Markers for the sources of operation fields in a request.

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
    """The path names the value: a reference by the parameters of its type, an id or a text by the parameter `name`.

    With `dropped`, dropped tables, views and generic tables are found too, as long as they can be restored.
    """

    name: str = ""
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A query parameter: a text, `true` or `false` for a bool, and for a tuple several values or one with commas.

    A number is at most `max_value`. `parse` converts all given values to the value of the field, instead of the type.
    """

    name: str
    max_value: int | None = None
    parse: Callable[[Sequence[str]], object] | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """A request header, its name in lower case; several lines are joined by commas."""

    name: str


@dataclass(frozen=True, slots=True)
class Body:
    """The JSON body, or one member of it.

    `of` is the type of the body, None if it is the type of the field. `member` is the attribute of the decoded body for
    the field, with dots for an attribute of an attribute. A reference by name gets its warehouse from the path.
    """

    of: type | None = None
    member: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """The body as a form (`application/x-www-form-urlencoded`) of this type. Handlers read it themselves."""

    of: type


@dataclass(frozen=True, slots=True)
class RequestProject:
    """The project of a management request: from path, header, query or the member `project_id` of its body."""

    in_body: bool = False


@dataclass(frozen=True, slots=True)
class PageSizeOf:
    """A query parameter with the size of a page, limited to the largest page.

    `after` is the parameter with the page token: a request that has it and no size gets the largest page.
    """

    name: str = "pageSize"
    after: str = "pageToken"


@dataclass(frozen=True, slots=True)
class PrincipalParameters:
    """The query parameters `principalUser` and `principalRole`; None if neither is set.

    The caller's own id is None too, unless `own`: a filter must not be lost.
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
