# SPDX-License-Identifier: Apache-2.0
"""The programs the stack needs: which versions, where they are kept, which are missing.

PostgreSQL, the object store and the ``fga`` command line come with the environment of this checkout. OpenFGA and OPA
are built once with Go, the identity provider gets an environment of its own; both are kept in a directory per version
outside the checkout, so a second checkout finds them. :mod:`gateway.embedded.install` puts there what is missing.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gateway.embedded import object_store
from gateway.embedded.errors import ToolMissing
from gateway.settings import Settings, cache_directory

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class GoTool:
    """A program built from a pinned module version. The module's hash is checked by Go itself, against its log."""

    name: str
    version: str
    package: str


OPA = GoTool("opa", "v1.22.0", "github.com/open-policy-agent/opa")
OPENFGA = GoTool("openfga", "v1.22.1", "github.com/openfga/openfga/cmd/openfga")
GO_TOOLS = (OPA, OPENFGA)
OLDEST_GO = (1, 26)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Where every program of the stack is."""

    opa: Path
    openfga: Path
    weed: Path
    nanoidp: Path
    policies: Path
    postgres_directory: str | None


@dataclass(frozen=True, slots=True)
class Cache:
    """The layout of the cache directory."""

    root: Path

    def go_tool(self, tool: GoTool) -> Path:
        """Where a built program is, or will be."""
        return self.root / "tools" / f"{tool.name}-{tool.version}" / tool.name

    def environment(self, name: str) -> Path:
        """The virtual environment for ``requirements-<name>.lock``: another one for each lock and Python version."""
        lock = CHECKOUT / f"requirements-{name}.lock"
        digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
        return self.root / "tools" / f"{name}-py{sys.version_info[0]}.{sys.version_info[1]}-{digest}"

    def nanoidp(self) -> Path:
        """The identity provider's program."""
        return self.environment("idp") / "bin" / "nanoidp"

    def jars(self) -> Path:
        """Where Spark's archives are kept."""
        return self.root / "jars"


def cache(settings: Settings) -> Cache:
    """The cache these settings name."""
    return Cache(Path(cache_directory(settings)))


def _chosen(setting: str | None, variable: str, kept: Callable[[], Path]) -> Path:
    if setting is not None:
        if not Path(setting).is_file():
            raise ToolMissing(f"LAKEGATE__EMBEDDED__{variable} names {setting}, which is no file")
        return Path(setting).resolve()
    path = kept()
    if not path.is_file():
        raise ToolMissing(f"{path.name} is missing ({path}); run `make setup`")
    return path


def locate(settings: Settings) -> Tools:
    """Find every program; nothing is downloaded or built.

    Raises:
        ToolMissing: one is not there; never does another take its place.
    """
    kept = cache(settings)
    wanted = settings.embedded
    return Tools(
        opa=locate_opa(settings),
        openfga=_chosen(wanted.openfga_bin, "OPENFGA_BIN", lambda: kept.go_tool(OPENFGA)),
        weed=object_store.program(wanted.weed_bin),
        nanoidp=_chosen(wanted.nanoidp_bin, "NANOIDP_BIN", kept.nanoidp),
        policies=CHECKOUT / "policies",
        postgres_directory=wanted.postgres_dir,
    )


def locate_opa(settings: Settings) -> Path:
    """Find OPA alone, for checks of policies on a machine without the rest of the stack.

    Raises:
        ToolMissing: it is not there.
    """
    return _chosen(settings.embedded.opa_bin, "OPA_BIN", lambda: cache(settings).go_tool(OPA))
