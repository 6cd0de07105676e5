# SPDX-License-Identifier: Apache-2.0
"""Measure the console: its own lines, and the compressed files that its first page loads."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from gateway.features.server.console_files import FILES, LIBRARIES, VENDOR

#: Bytes of the compressed files that the first page loads, lines of our own, and lines of one file, at most.
FIRST_LOAD, OWN_LINES, FILE_LINES = 200_000, 10_000, 400


def own_files() -> Iterator[Path]:
    """Yield the modules, the style sheet and the page of the console, without its libraries."""
    for each in sorted(FILES.rglob("*")):
        if each.suffix in (".js", ".css", ".html") and VENDOR not in each.parents:
            yield each


def own_lines() -> dict[str, int]:
    """Return the number of lines of each file of our own."""
    return {each.relative_to(FILES).as_posix(): len(each.read_text().splitlines()) for each in own_files()}


def imported(module: Path, *, lazily: bool = False) -> set[Path]:
    """Return the files that a module imports. Those of `import()` are loaded `lazily`, when their page is opened."""
    pattern = r"""import\("([^"]+)"\)""" if lazily else r"""(?:from\s*|import\s*)["']([^"']+)["']"""
    libraries = {name: VENDOR / each.folder / file for each in LIBRARIES for name, file in each.imports.items()}
    found = re.findall(pattern, module.read_text())
    return {libraries.get(name) or (module.parent / name).resolve() for name in found}


def first_load() -> int:
    """Return the compressed bytes of all files that the home page loads."""
    found, waiting = set[Path](), [FILES / "main.js", FILES / "pages/home.js"]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(imported(each))
    found |= {FILES / "index.html", FILES / "console.css"}
    return sum(len(gzip.compress(each.read_bytes(), 1)) for each in found)
