# SPDX-License-Identifier: Apache-2.0
"""Search for a Java that Spark 4.1 supports: 17 or 21. With newer ones Hadoop fails: "getSubject is not supported"."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from lakegate.local.errors import ToolMissing

SUPPORTED = (17, 21)

_PLACES = (
    "/usr/lib/jvm/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
)
_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


def version_of(home: Path) -> int | None:
    """Return the feature version in the ``release`` file of the Java at ``home``; None if there is no Java."""
    try:
        found = _VERSION.search((home / "release").read_text(errors="replace"))
    except OSError:
        return None
    return int(found[1]) if found and (home / "bin" / "java").exists() else None


def _candidates(java_home: str | None, path: str) -> Iterator[Path]:
    if java_home:
        yield Path(java_home)
    on_path = shutil.which("java", path=path)
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for pattern in _PLACES:
        yield from sorted(Path("/").glob(pattern.lstrip("/")))
    yield from sorted((Path.home() / ".sdkman/candidates/java").glob("*"))


def find(java_home: str | None, path: str) -> Path:
    """Return the first supported Java of these: ``JAVA_HOME``, the one on the PATH, those in the usual directories.

    Raises:
        ToolMissing: none was found. The message lists unsupported ones and the commands that install one.
    """
    rejected: dict[str, int] = {}
    for home in _candidates(java_home, path):
        version = version_of(home)
        if version in SUPPORTED:
            return home
        if version is not None:
            rejected[str(home)] = version
    seen = "".join(
        f"\n  found Java {version} in {home}, which Spark 4.1 does not run on" for home, version in rejected.items()
    )
    raise ToolMissing(
        f"Spark needs Java 17 or 21, and none was found.{seen}\n"
        "  Debian, Ubuntu: apt-get install openjdk-17-jre-headless\n"
        "  Fedora: dnf install java-21-openjdk-headless\n"
        "  macOS: brew install openjdk@21\n"
        "  If you have one elsewhere, set JAVA_HOME to its directory."
    )
