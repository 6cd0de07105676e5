# SPDX-License-Identifier: Apache-2.0
"""Environments of engines below ~/.cache/lakegate/engines: pinned packages and archives, with checksums.

The lists are in `tests/locks/`. `NAME.lock` is compiled from `NAME.in` with `uv pip compile --generate-hashes`. Each
line of `NAME.jars` has the Maven coordinates of an archive (group:artifact:version) and its SHA-256.
`NAME-FOLDER.pom.xml` names artifacts that Maven resolves with all their dependencies, and `NAME-FOLDER.sha256` has the
checksums of the files. No engine changes the environment of the tests.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.settings import java_home, load
from lakegate.local import spark_jars, toolchain
from lakegate.local.spark_jars import Archive

LOCKS = Path(__file__).parents[2] / "locks"
_INSTALL_SECONDS = 1800.0


class EnvironmentFailed(Exception):
    """An environment could not be made; the message has the end of the output of the failed command."""


@dataclass(frozen=True)
class Environment:
    """The Python program with the packages of an engine, if it has any, its archives, and its folders of archives."""

    python: Path
    jars: tuple[Path, ...]
    folders: Mapping[str, Path]


def directory(engine: str) -> Path:
    """Return the directory of an engine in the user's cache."""
    return toolchain.cache(load({})).jars().parent / "engines" / engine


def archives(engine: str) -> list[Archive]:
    """Return the archives that `NAME.jars` pins; an engine without the file has none."""
    listed = LOCKS / f"{engine}.jars"
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
    lock = LOCKS / f"{engine}.lock"
    if lock.is_file() and _mark(home) != _digest(lock):
        raise EnvironmentFailed(f"run `make test-engine ENGINE={engine}`, which makes the environment of the engine")
    jars = tuple(home / "jars" / each.file_name for each in archives(engine))
    missing = [path.name for path in jars if not path.is_file()]
    if missing:
        raise EnvironmentFailed(f"{', '.join(missing)} missing: run `make test-engine ENGINE={engine}`")
    python = home / "venv" / "bin" / "python" if lock.is_file() else Path(sys.executable)
    folders = {name: home / name for name in _poms(engine)}
    for name, folder in folders.items():
        if not _is_right(folder, engine, name):
            raise EnvironmentFailed(f"{folder} is missing or outdated: run `make test-engine ENGINE={engine}`")
    return Environment(python, jars, folders)


def prepare(engine: str) -> Environment:
    """Make the environment of an engine if it is missing or outdated, and return it.

    Raises:
        EnvironmentFailed: a package could not be installed.
        StackError: an archive could not be fetched, or has another checksum.
    """
    home = directory(engine)
    home.mkdir(parents=True, exist_ok=True)
    lock = LOCKS / f"{engine}.lock"
    if lock.is_file() and _mark(home) != _digest(lock):
        _install(home, lock)
    for archive in archives(engine):
        if not spark_jars.is_right(home / "jars" / archive.file_name, archive):
            print(f"Downloading {archive.file_name} (once)", file=sys.stderr, flush=True)
            spark_jars.fetch(archive, home / "jars", java_home=java_home(), environment=dict(os.environ))
    for name, pom in _poms(engine).items():
        if not _is_right(home / name, engine, name):
            _resolve(home, engine, name, pom)
    return of(engine)


def _poms(engine: str) -> dict[str, Path]:
    """Return the POM of each folder of archives."""
    found = sorted(LOCKS.glob(f"{engine}-*.pom.xml"))
    return {path.name.removeprefix(f"{engine}-").removesuffix(".pom.xml"): path for path in found}


def _is_right(folder: Path, engine: str, name: str) -> bool:
    """Return True if the folder has exactly the files with the pinned checksums."""
    lines = (LOCKS / f"{engine}-{name}.sha256").read_text().splitlines()
    expected = {file: digest for digest, file in (line.split() for line in lines)}
    found = {path.name: path for path in folder.glob("*.jar")}
    return set(found) == set(expected) and all(_digest(found[file]) == digest for file, digest in expected.items())


def _resolve(home: Path, engine: str, name: str, pom: Path) -> None:
    """Let Maven copy the artifacts of a POM and their dependencies into a folder; verify the checksums."""
    maven = shutil.which("mvn")
    if maven is None:
        raise EnvironmentFailed(f"{engine} needs Maven once, to download its archives; install it")
    print(f"Downloading the archives of {pom.name} (once)", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="part-", dir=home) as part:
        shutil.copy(pom, Path(part) / "pom.xml")
        done = subprocess.run(
            [maven, "-B", "-q", "dependency:copy-dependencies", "-DincludeScope=runtime",
             f"-DoutputDirectory={part}/jars"],
            cwd=part, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS,
        )  # fmt: skip
        if done.returncode != 0:
            raise EnvironmentFailed(f"{pom.name}: {(done.stdout + done.stderr)[-1500:]}")
        if not _is_right(Path(part) / "jars", engine, name):
            raise EnvironmentFailed(f"{pom.name}: an archive is missing or does not have its pinned checksum")
        shutil.rmtree(home / name, ignore_errors=True)
        os.replace(Path(part) / "jars", home / name)


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
