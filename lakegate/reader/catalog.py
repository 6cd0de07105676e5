# SPDX-License-Identifier: Apache-2.0
"""Load tables from a Lakegate catalog with PyIceberg. Metadata, credentials and restrictions are of one response.

PyIceberg ignores `read-restrictions`, and a second request for them could have a response for other rights. So the
response is read here, and PyIceberg gets the rest of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import requests
from pyiceberg.catalog.rest import RestCatalog, TableResponse
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    ForbiddenError,
    NoSuchTableError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    UnauthorizedError,
)
from pyiceberg.io import FileIO, load_file_io
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from lakegate.reader.table import RestrictedTable
from lakegate.restrictions.wire import decode

#: Seconds for a connection and for each read of a response.
TIMEOUT = (10.0, 60.0)
#: A table property that names a class to import. It is removed, because any writer of the table can set it.
_CLASS_OF_IO = "py-io-impl"


#: The maximum seconds to wait before a request is repeated.
_LONGEST_PAUSE = 10.0
_RETRY_STATUS = (429, 503)


class LoadFailed(Exception):
    """Raised if a table cannot be loaded. `status` is the HTTP status, or None without a valid response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _Restrictions(msgspec.Struct, rename="kebab"):
    """The only field of a load response that PyIceberg does not read."""

    read_restrictions: msgspec.Raw = msgspec.Raw(b"{}")


class _Errors(msgspec.Struct):
    class _Error(msgspec.Struct):
        message: str = ""

    error: _Error


class _Retry(Retry):
    """Repeat a request to which the gateway returned 429 or 503. With these statuses nothing was done."""

    def get_retry_after(self, response: Any) -> float | None:
        """Return the seconds in `Retry-After`, but not more than the time limit for a slow response."""
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, _LONGEST_PAUSE)


_RETRY = _Retry(
    total=4,
    connect=0,
    read=0,
    redirect=0,
    other=0,
    status_forcelist=_RETRY_STATUS,
    allowed_methods=("GET", "POST"),
    backoff_factor=0.25,
    raise_on_status=False,
)


def session() -> requests.Session:
    """Return a session whose requests have a timeout, and are repeated up to four times on 429 and 503."""
    made = requests.Session()
    mount(made)
    return made


def mount(session: requests.Session) -> None:
    """Set the timeout and the retries of a session."""
    for scheme in ("https://", "http://"):
        session.mount(scheme, _Adapter(max_retries=_RETRY))


class _Adapter(HTTPAdapter):  # type: ignore[misc]  # the library has no types
    def send(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs["timeout"] = TIMEOUT
        return super().send(request, *args, **kwargs)


class RestrictedCatalog(RestCatalog):
    """A PyIceberg catalog whose requests have a timeout. It also loads restricted tables."""

    def __repr__(self) -> str:
        return f"RestrictedCatalog(uri={self.uri!r})"

    def _create_session(self) -> requests.Session:
        session: requests.Session = super()._create_session()
        mount(session)
        return session

    def load_restricted(self, identifier: str | tuple[str, ...], properties: Mapping[str, str]) -> RestrictedTable:
        """Return a table with its restrictions. `properties` configure the file client, and take precedence over the
        server's properties.

        Raises LoadFailed if the gateway refuses, and RestrictionNotSupported for restrictions that the reader cannot
        apply.
        """
        names = self._split_identifier_for_path(identifier)
        answer = self._session.get(self.url("namespaces/{namespace}/tables/{table}", prefixed=True, **names))
        if answer.status_code != 200:
            raise LoadFailed(f"the gateway refused the table: {_message(answer)}", answer.status_code)
        loaded, restrictions = _decoded(answer)
        files, found = self._files(loaded, properties), decode(bytes(restrictions))
        return RestrictedTable(loaded.metadata, files, found, loaded.metadata_location)

    def _files(self, loaded: TableResponse, properties: Mapping[str, str]) -> FileIO:
        """Return the file client of the table. The properties of the table itself do not configure it."""
        credentials = self._resolve_storage_credentials(loaded.storage_credentials, loaded.metadata_location)
        found = {**self.properties, **loaded.config, **credentials}
        found.pop(_CLASS_OF_IO, None)
        if self._auth_manager:
            found["auth.manager"] = self._auth_manager  # adds the token to signing requests
        return load_file_io({**found, **properties}, loaded.metadata_location)


def opened(name: str, **properties: str) -> RestrictedCatalog:
    """Return a catalog. Raises LoadFailed if the gateway cannot be reached or refuses the configuration."""
    try:
        return RestrictedCatalog(name, **properties)
    except (RESTError, NoSuchTableError, requests.RequestException, ValueError) as error:
        problem = f"{type(error).__name__}); {_remedy(error)}"
    # Raised outside of the handler: the original error can contain the response.
    raise LoadFailed(f"the catalog's configuration could not be read ({problem}")


def _remedy(error: Exception) -> str:
    match error:
        case UnauthorizedError() | AuthorizationExpiredError():
            return "the gateway does not accept the token: check that it is valid and has not ended"
        case ServiceUnavailableError() | ServerError():
            return "the gateway is not available: try again"
        case ForbiddenError() | NoSuchTableError() | BadRequestError():
            return "check the address, and the name of the warehouse and the caller's rights on it"
        case requests.ConnectionError() | requests.Timeout():
            return "the gateway could not be reached: check the address and the network"
    return "check that the address is that of a Lakegate gateway"


def _decoded(answer: requests.Response) -> tuple[TableResponse, msgspec.Raw]:
    try:
        restrictions = msgspec.json.decode(answer.content, type=_Restrictions).read_restrictions
        return TableResponse.model_validate_json(answer.content), restrictions
    except ValueError:  # also the errors of pydantic and msgspec; they contain parts of the response
        pass
    raise LoadFailed("the gateway's answer is not a load response of the Iceberg REST specification", 200)


def _message(answer: requests.Response) -> str:
    """Return the text of an error response of the gateway."""
    try:
        return msgspec.json.decode(answer.content, type=_Errors).error.message[:500]
    except ValueError:
        return f"HTTP {answer.status_code}"
