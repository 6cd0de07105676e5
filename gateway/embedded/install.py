# SPDX-License-Identifier: Apache-2.0
"""Puts every tool in place that is not there yet: ``python -m gateway.embedded.install``, run by ``make setup``.

A second run looks at a few files and does nothing. Each step says what it does and how long it took; one that fails
says what failed and how to mend it. Whatever is half done is thrown away, so the next run begins it anew.
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

from gateway import settings as all_settings
from gateway.embedded import spark_jars
from gateway.embedded.errors import StackError
from gateway.embedded.toolchain import CHECKOUT, GO_TOOLS, OLDEST_GO, Cache, GoTool, cache
from gateway.settings import Settings, java_home, search_path, tool_environment

_GO_VERSION = re.compile(r"go(\d+)\.(\d+)")
_SAID_LINES = 12

Say = Callable[[str], None]


@contextmanager
def _step(console: Console, title: str) -> Iterator[Say]:
    """One long step: a spinner with what happens at the moment, plain lines where no terminal is."""
    started = time.monotonic()
    if not console.is_terminal:
        console.print(f"{escape(title)} …")
    with Status(escape(title), console=console) as status:
        yield lambda text: status.update(f"{escape(title)}  [dim]{escape(text[:70])}[/dim]")
    console.print(f"[green]✓[/green] {escape(title)} [dim]({time.monotonic() - started:.0f} s)[/dim]")


def _run(argv: list[str], environment: dict[str, str], say: Say, mend: str) -> None:
    """Run a program, passing on its lines; raises StackError with their end and ``mend`` if it fails."""
    said: list[str] = []
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
                said = [*said[1 - _SAID_LINES :], line.rstrip()]
                say(line.strip())
            code = process.wait()
    except OSError as error:
        raise StackError(f"{argv[0]} cannot be run: {error}\n{mend}") from error
    if code != 0:
        raise StackError("\n".join([f"{Path(argv[0]).name} failed with exit code {code}:", *said, mend]))


def locked_environment(kept: Cache, name: str, say: Say) -> Path:
    """The virtual environment for ``requirements-<name>.lock``, made if it is not there. Raises StackError."""
    target = kept.environment(name)
    if not (target / "complete").exists():
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        mend = "Is the package index reachable? pip's own settings (pip.conf, PIP_*) are used as they are."
        _run([sys.executable, "-m", "venv", str(target)], tool_environment(), say, "Install Python's venv module.")
        lock = CHECKOUT / f"requirements-{name}.lock"
        pip = [str(target / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        arguments = ["--require-hashes", "--no-deps", "--only-binary=:all:", "-r", str(lock)]
        _run([*pip, *arguments], tool_environment(), say, mend)
        (target / "complete").touch()
    return target


def go_version(program: str) -> tuple[int, int] | None:
    """The version of a Go program as (major, minor), or None if it does not say."""
    try:
        said = subprocess.run(
            [program, "version"], env=tool_environment(GOTOOLCHAIN="local"), capture_output=True, text=True, timeout=30
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _GO_VERSION.search(said)
    return (int(found[1]), int(found[2])) if found else None


def _go(kept: Cache, console: Console) -> tuple[str, bool]:
    """A Go that is new enough, and whether it is our own."""
    on_path = shutil.which("go", path=search_path())
    if on_path is not None and (go_version(on_path) or (0, 0)) >= OLDEST_GO:
        return on_path, False
    with _step(console, "Installing Go (75 MB), to build with") as say:
        environment = locked_environment(kept, "go", say)
    found = sorted(environment.glob("lib/python*/site-packages/go/bin/go"))
    if not found or (go_version(str(found[0])) or (0, 0)) < OLDEST_GO:
        raise StackError(f"the installed Go in {environment} does not run; remove that directory and run again")
    return str(found[0]), True


def _build(tool: GoTool, go: str, kept: Cache, environment: dict[str, str], say: Say) -> None:
    target = kept.go_tool(tool)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="part-", dir=target.parent) as part:
        _run(
            [go, "install", "-v", "-ldflags=-s -w", f"{tool.package}@{tool.version}"],
            environment | {"GOBIN": part},
            say,
            f"Is the Go module proxy reachable? Or build {tool.name} {tool.version} elsewhere and name it in "
            f"LAKEGATE__EMBEDDED__{tool.name.upper()}_BIN.",
        )
        os.replace(Path(part) / tool.name, target)


def _go_tools(settings: Settings, kept: Cache, console: Console) -> None:
    named = {"opa": settings.embedded.opa_bin, "openfga": settings.embedded.openfga_bin}
    build_go_tools([tool for tool in GO_TOOLS if named[tool.name] is None], kept, console)


def build_go_tools(tools: Sequence[GoTool], kept: Cache, console: Console) -> None:
    """Build those that are not there yet. Raises StackError."""
    missing = [tool for tool in tools if not kept.go_tool(tool).is_file()]
    if not missing:
        return
    go, own = _go(kept, console)
    environment = tool_environment(GOTOOLCHAIN="local", GOFLAGS="-trimpath -modcacherw", CGO_ENABLED="0")
    kept.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="go-build-", dir=kept.root) as scratch:
        if own:  # somebody without Go wants no module and build caches of two gigabytes left in his home
            environment |= {"GOPATH": scratch, "GOMODCACHE": f"{scratch}/mod", "GOCACHE": f"{scratch}/cache"}
        for tool in missing:
            with _step(console, f"Building {tool.name} {tool.version}, once; two to five minutes") as say:
                _build(tool, go, kept, environment, say)
    if own:
        shutil.rmtree(kept.environment("go"), ignore_errors=True)  # it has done all it was for


def _jars(kept: Cache, console: Console) -> None:
    for archive in spark_jars.ARCHIVES:
        if (kept.jars() / archive.file_name).is_file():
            continue
        with _step(console, f"Fetching {archive.file_name} ({archive.megabytes} MB)"):
            spark_jars.fetch(archive, kept.jars(), java_home=java_home(), environment=tool_environment())


def install(settings: Settings, console: Console, *, with_jars: bool = True) -> None:
    """Put every missing tool in place.

    Raises:
        StackError: one could not be had; the message says how to mend it.
    """
    kept = cache(settings)
    if settings.embedded.nanoidp_bin is None and not kept.nanoidp().is_file():
        with _step(console, "Installing the development identity provider") as say:
            locked_environment(kept, "idp", say)
    _go_tools(settings, kept, console)
    if with_jars:
        _jars(kept, console)


def main() -> int:
    """Run from the Makefile; the exit code is 0 when everything is in place."""
    console = Console(stderr=True)
    try:
        install(all_settings.load(), console)
    except (StackError, all_settings.SettingsError) as error:
        console.print(f"[red]Setup failed.[/red] {escape(str(error))}", soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
