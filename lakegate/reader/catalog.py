# SPDX-License-Identifier: Apache-2.0
"""Load tables from a Lakegate catalog with PyIceberg: metadata, credentials and restrictions of one response.

PyIceberg ignores `read-restrictions`. A second request could have an answer for other rights, so the response is read
here, and PyIceberg gets its other parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import requests
from pyiceberg.catalog.rest import RestCatalog, TableResponse
from pyiceberg.exceptions import NoSuchTableError, RESTError
from pyiceberg.io import FileIO, load_file_io
from requests.adapters import HTTPAdapter

from lakegate.reader.table import RestrictedTable
from lakegate.reader.wire import decode

#: Seconds for a connection and for each read of a response.
TIMEOUT = (10.0, 60.0)
#: A property by which a table names a class to import. Writers of a table choose its properties.
_CLASS_OF_IO = "py-io-impl"


class LoadFailed(Exception):
    """Raised if a table cannot be loaded. `status` is the HTTP status, or None without a valid response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _Restrictions(msgspec.Struct, rename="kebab"):
    """The only member of a load response that PyIceberg does not read."""

    read_restrictions: msgspec.Raw = msgspec.Raw(b"{}")


class _Errors(msgspec.Struct):
    class _Error(msgspec.Struct):
        message: str = ""

    error: _Error


class _WithTimeout(HTTPAdapter):  # type: ignore[misc]  # the library has no types
    def send(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs["timeout"] = TIMEOUT
        return super().send(request, *args, **kwargs)


class RestrictedCatalog(RestCatalog):
    """A catalog of PyIceberg whose requests have a timeout, and that loads restricted tables."""

    def __repr__(self) -> str:
        return f"RestrictedCatalog(uri={self.uri!r})"

    def _create_session(self) -> requests.Session:
        session: requests.Session = super()._create_session()
        for scheme in ("https://", "http://"):
            session.mount(scheme, _WithTimeout())
        return session

    def load_restricted(self, identifier: str | tuple[str, ...], properties: Mapping[str, str]) -> RestrictedTable:
        """Return a table with its restrictions. `properties` of the file client precede those of the server.

        Raise LoadFailed if the gateway refuses, and RestrictionNotSupported for restrictions that the reader cannot
        apply.
        """
        names = self._split_identifier_for_path(identifier)
        answer = self._session.get(self.url("namespaces/{namespace}/tables/{table}", prefixed=True, **names))
        if answer.status_code != 200:
            raise LoadFailed(f"the gateway refused the table: {_message(answer)}", answer.status_code)
        loaded, restrictions = _decoded(answer)
        return RestrictedTable(loaded.metadata, self._files(loaded, properties), decode(bytes(restrictions)))

    def _files(self, loaded: TableResponse, properties: Mapping[str, str]) -> FileIO:
        """Return the client of the table's files. Properties of the table itself do not configure it."""
        credentials = self._resolve_storage_credentials(loaded.storage_credentials, loaded.metadata_location)
        found = {**self.properties, **loaded.config, **credentials}
        found.pop(_CLASS_OF_IO, None)
        if self._auth_manager:
            found["auth.manager"] = self._auth_manager  # for signed requests
        return load_file_io({**found, **properties}, loaded.metadata_location)


def opened(name: str, **properties: str) -> RestrictedCatalog:
    """Return a catalog. Raise LoadFailed if the gateway cannot be reached or refuses the configuration."""
    try:
        return RestrictedCatalog(name, **properties)
    except (RESTError, NoSuchTableError, requests.RequestException, ValueError) as error:
        problem = type(error).__name__
    # Raised outside of the handler: the original error can contain the response.
    raise LoadFailed(f"the catalog's configuration could not be read ({problem}); check the address and the token")


def _decoded(answer: requests.Response) -> tuple[TableResponse, msgspec.Raw]:
    try:
        restrictions = msgspec.json.decode(answer.content, type=_Restrictions).read_restrictions
        return TableResponse.model_validate_json(answer.content), restrictions
    except ValueError:  # also the errors of pydantic and msgspec; they contain parts of the response
        pass
    raise LoadFailed("the gateway's answer is not a load response of the Iceberg REST specification", 200)


def _message(answer: requests.Response) -> str:
    """Return the text of an error of the gateway."""
    try:
        return msgspec.json.decode(answer.content, type=_Errors).error.message[:500]
    except ValueError:
        return f"HTTP {answer.status_code}"
