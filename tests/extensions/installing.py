# SPDX-License-Identifier: Apache-2.0
"""Install a package of extensions for one test, as pip does: its modules and its metadata on the import path."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent


def install(site: Path, package: str) -> None:
    """Copy a package of this directory to `site`, with the metadata of its pyproject.toml."""
    source = HERE / package
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    for module in source.iterdir():
        if module.is_dir() and module.name != "__pycache__":
            shutil.copytree(module, site / module.name, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines: list[str] = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")


def forget(package: str) -> None:
    """Remove the modules of an installed package from this process."""
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]
