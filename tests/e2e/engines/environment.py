# SPDX-License-Identifier: Apache-2.0
"""Environments of engines below ~/.cache/lakegate/engines: pinned packages and archives, with checksums.

`NAME.lock` is compiled from `NAME.in` with `uv pip compile --generate-hashes`. Each line of `NAME.jars` has the Maven
coordinates of an archive (group:artifact:version) and its SHA-256. No engine changes the environment of the tests.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gateway.embedded import spark_jars, toolchain
from gateway.embedded.spark_jars import Archive
from gateway.settings import java_home, load

HERE = Path(__file__).parent
_INSTALL_SECONDS = 1800.0


class EnvironmentFailed(Exception):
    """An environment could not be made; the message has the end of the output of the failed command."""


@dataclass(frozen=True)
class Environment:
    """The Python program with the packages of an engine, if it has any, and its archives."""

    python: Path
    jars: tuple[Path, ...]


def directory(engine: str) -> Path:
    """Return the directory of an engine in the user's cache."""
    return toolchain.cache(load({})).jars().parent / "engines" / engine


def archives(engine: str) -> list[Archive]:
    """Return the archives that `NAME.jars` pins; an engine without the file has none."""
    listed = HERE / f"{engine}.jars"
    if not listed.is_file():
        return []
    found = []
    for line in listed.read_text().splitlines():
        if line and not line.startswith("#"):
            coordinates, digest = line.split()
            group, name, version = coordinates.split(":")
            found.append(Archive(group, name, version, digest, 0))
    return found


def of(engine: str) -> Environment:
    """Return the environment that `prepare` made.

    Raises:
        EnvironmentFailed: the environment is missing or was made from another lock file.
    """
    home = directory(engine)
    lock = HERE / f"{engine}.lock"
    if lock.is_file() and _mark(home) != _digest(lock):
        raise EnvironmentFailed(f"run `make test-engine ENGINE={engine}`, which makes the environment of the engine")
    jars = tuple(home / "jars" / each.file_name for each in archives(engine))
    missing = [path.name for path in jars if not path.is_file()]
    if missing:
        raise EnvironmentFailed(f"{', '.join(missing)} missing: run `make test-engine ENGINE={engine}`")
    python = home / "venv" / "bin" / "python" if lock.is_file() else Path(sys.executable)
    return Environment(python, jars)


def prepare(engine: str) -> Environment:
    """Make the environment of an engine if it is missing or outdated, and return it.

    Raises:
        EnvironmentFailed: a package could not be installed.
        StackError: an archive could not be fetched, or has another checksum.
    """
    home = directory(engine)
    home.mkdir(parents=True, exist_ok=True)
    lock = HERE / f"{engine}.lock"
    if lock.is_file() and _mark(home) != _digest(lock):
        _install(home, lock)
    for archive in archives(engine):
        if not spark_jars.is_right(home / "jars" / archive.file_name, archive):
            print(f"Downloading {archive.file_name} (once)", file=sys.stderr, flush=True)
            spark_jars.fetch(archive, home / "jars", java_home=java_home(), environment=dict(os.environ))
    return of(engine)


def _install(home: Path, lock: Path) -> None:
    """Install the packages of a lock file into a new environment, and keep the checksum of the file beside it."""
    print(f"Installing {lock.name} into {home / 'venv'} (once)", file=sys.stderr, flush=True)
    venv = home / "venv"
    shutil.rmtree(venv, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="lakegate-engine-") as scratch:
        for argv in (
            [sys.executable, "-m", "venv", str(venv)],
            [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(lock)],
        ):
            done = subprocess.run(
                argv, cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                check=False, timeout=_INSTALL_SECONDS,
            )  # fmt: skip
            if done.returncode != 0:
                raise EnvironmentFailed(f"{lock.name}: {(done.stdout + done.stderr)[-1500:]}")
    (home / "lock.sha256").write_text(_digest(lock))


def _digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def _mark(home: Path) -> str:
    try:
        return (home / "lock.sha256").read_text()
    except OSError:
        return ""
