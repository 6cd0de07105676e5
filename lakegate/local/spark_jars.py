# SPDX-License-Identifier: Apache-2.0
"""Download Iceberg's archives for Spark once, with pinned checksums, and record the classes that Spark loads.

An installed Maven is preferred, because its configuration has the user's mirrors. The alternative is Ivy, which is part
of PySpark and needs only the Java that Spark needs.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.settings import tool_environment
from lakegate.local import jdk
from lakegate.local.errors import StackError, ToolMissing
from lakegate.local.ports import LOOPBACK
from lakegate.local.programs import Notify, run

_FETCH_SECONDS = 900.0
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Archive:
    """One archive by its Maven coordinates, its SHA-256 and its size in MB, which setup prints."""

    group: str
    name: str
    version: str
    sha256: str
    megabytes: int

    @property
    def file_name(self) -> str:
        """Return the archive's file name as Maven repositories have it."""
        return f"{self.name}-{self.version}.jar"


ARCHIVES = (
    Archive(
        "org.apache.iceberg",
        "iceberg-spark-runtime-4.1_2.13",
        "1.12.0",
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
        48,
    ),
    Archive(
        "org.apache.iceberg",
        "iceberg-aws-bundle",
        "1.12.0",
        "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
        69,
    ),
)


def locate(directory: Path) -> list[Path]:
    """Return the paths of the archives in ``directory``, for the option ``spark.jars``.

    Raises:
        ToolMissing: an archive is missing.
    """
    paths = [directory / archive.file_name for archive in ARCHIVES]
    for path in paths:
        if not path.is_file():
            raise ToolMissing(
                f"Spark's archive {path.name} is missing ({directory}); run `lakegate setup --with-spark`, "
                "or `make setup` in a checkout"
            )
    return paths


def is_right(path: Path, archive: Archive) -> bool:
    """Return True if the file exists and has the pinned checksum."""
    try:
        with path.open("rb") as file:
            digest = hashlib.sha256()
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError:
        return False
    return digest.hexdigest() == archive.sha256


def fetch(archive: Archive, directory: Path, *, java_home: str | None, environment: dict[str, str]) -> Path:
    """Fetch one archive into ``directory`` and verify its checksum.

    Raises:
        StackError: neither Maven nor Ivy fetched a file with the pinned checksum.
    """
    directory.mkdir(parents=True, exist_ok=True)
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="part-", dir=directory) as part:
        for reason in (_with_maven, _with_ivy):
            problem = reason(archive, Path(part), java_home, environment)
            got = Path(part) / archive.file_name
            if problem is None and is_right(got, archive):
                os.replace(got, directory / archive.file_name)
                return directory / archive.file_name
            if problem is None:
                problem = (
                    "the file does not have the pinned SHA-256 checksum" if got.exists() else "no file was fetched"
                )
            failures.append(f"{reason.__name__.removeprefix('_with_')}: {problem}")
            got.unlink(missing_ok=True)
    raise StackError(
        f"{archive.file_name} could not be fetched from a Maven repository.\n  "
        + "\n  ".join(failures)
        + f"\n  Behind a proxy or with a mirror, say so in ~/.m2/settings.xml or ~/.ivy2/ivysettings.xml, or put the "
        f"file into {directory} yourself."
    )


def record_classes(jars: Sequence[Path], archive: Path, *, java: Path, notify: Notify) -> None:
    """Store the classes that Spark loads in ``archive``, and remove files of earlier versions of this installation.

    The file is empty if this Java cannot store classes.

    Raises:
        StackError: Spark did not run.
    """
    with tempfile.TemporaryDirectory(prefix="part-", dir=archive.parent) as part:
        file = Path(part) / archive.name
        command = [sys.executable, "-m", "lakegate.spark.jobs.class_recording", str(file), *map(str, jars)]
        environment = tool_environment(JAVA_HOME=str(java), SPARK_LOCAL_IP=LOOPBACK)
        # Java writes the file after the end of Spark's process. Both have the same standard output, and `run` reads it
        # to its end.
        run(command, environment, notify, f"Spark was started with the Java in {java}.")
        if not file.is_file():
            file.touch()
        for outdated in archive.parent.glob(f"{archive.stem.rpartition('-')[0]}-*{archive.suffix}"):
            outdated.unlink()
        os.replace(file, archive)


def _run(argv: list[str], environment: dict[str, str]) -> str | None:
    """Run a program that fetches an archive. Return None on success, otherwise the end of its output."""
    try:
        done = subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    output = (done.stdout + done.stderr).strip().splitlines()
    return " / ".join(line.strip() for line in output[-3:])[:600] or f"exit code {done.returncode}"


def _with_maven(archive: Archive, part: Path, java_home: str | None, environment: dict[str, str]) -> str | None:
    maven = shutil.which("mvn", path=environment.get("PATH"))
    if maven is None:
        return "not installed"
    coordinates = f"{archive.group}:{archive.name}:{archive.version}"
    goals = [
        ["dependency:get", f"-Dartifact={coordinates}"],
        ["dependency:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={part}"],
    ]
    for goal in goals:
        problem = _run([maven, "-B", "-q", *goal, "-Dtransitive=false"], environment)
        if problem is not None:
            return problem
    return None


def _with_ivy(archive: Archive, part: Path, java_home: str | None, environment: dict[str, str]) -> str | None:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        return "PySpark is not installed"
    java = jdk.find(java_home, environment.get("PATH", os.defpath)) / "bin" / "java"
    settings = Path.home() / ".ivy2" / "ivysettings.xml"
    own = ["-settings", str(settings)] if settings.is_file() else []
    return _run(
        [
            str(java),
            "-cp",
            str(Path(found.origin).parent / "jars" / "*"),
            "org.apache.ivy.Main",
            *own,
            *("-cache", str(part / "ivy")),
            *("-dependency", archive.group, archive.name, archive.version),
            *("-confs", "default", "-notransitive", "-types", "jar"),
            *("-retrieve", f"{part}/[artifact]-[revision].[ext]"),
        ],
        environment,
    )
