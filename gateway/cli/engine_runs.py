# SPDX-License-Identifier: Apache-2.0
"""Have an engine read the canary of a probe: by a command, by Trino's HTTP API, or with `lakegate.reader`."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from gateway.cli.common import trust

SECONDS: Final = 300.0
"""The time limit of one run of an engine."""
NOT_RUN: Final = 75
"""The exit code of a command that could not reach its engine (EX_TEMPFAIL). Then no result is posted."""
MAX_OUTPUT: Final = 65_536
_CALL_SECONDS: Final = 60.0


class EngineNotReached(Exception):
    """The engine could not be reached, so it has shown nothing about itself."""


Run = Callable[[str], str]
"""Returns the output of the engine for the name of a canary, `namespace.table`. Raises EngineNotReached."""


def by_command(command: str, warehouse: str, subject: str) -> Run:
    """Return the run of a command. Variables of its environment name the table, the warehouse and the user.

    The output contains standard error: messages can show values, too.
    """
    words = shlex.split(command)
    if not words:
        raise click.UsageError("--command must not be empty")

    def run(table: str) -> str:
        from gateway.settings import tool_environment

        own = {
            "LAKEGATE_PROBE_TABLE": table,
            "LAKEGATE_PROBE_WAREHOUSE": warehouse,
            "LAKEGATE_PROBE_USER": subject,
        }
        # The command belongs to the engine. It must read with the engine's credentials, not with the operator's token.
        environment = tool_environment(**own)
        environment.pop("LAKEGATE_TOKEN", None)
        try:
            done = subprocess.run(
                words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineNotReached(f"the command {words[0]} could not be run: {error}") from None
        if done.returncode == NOT_RUN:
            raise EngineNotReached(f"the command {words[0]} could not reach its engine (exit code {NOT_RUN})")
        return done.stdout.decode(errors="replace")

    return run


def by_reader(gateway: str, warehouse: str, token: str, subject: str) -> Run:
    """Return the run of a service that reads with `lakegate.reader` for the user. `token` is the service's own."""

    def run(table: str) -> str:
        from lakegate.reader import ExchangeFailed, LoadFailed, Reader, ReadFailed, RestrictionNotSupported

        reader = Reader(gateway, warehouse, token).as_named(subject.partition("~")[2] or subject)
        try:
            return str(reader.table(table).to_arrow().to_pylist())
        except (ExchangeFailed, LoadFailed) as error:
            if error.status is None or error.status >= 500:
                raise EngineNotReached(f"the reader could not reach the gateway: {error}") from None
            return str(error)
        except (ReadFailed, RestrictionNotSupported) as error:
            return str(error)

    return run


@dataclass(frozen=True, slots=True)
class Trino:
    """A Trino: its address, its catalog, and the user of the session. With `token`, that is sent as a bearer token."""

    url: str
    catalog: str
    user: str
    token: str | None = None

    def run(self, table: str) -> str:
        """Return the rows and errors of several statements on the canary. Raises EngineNotReached."""
        import httpx2

        namespace, _, name = table.partition(".")
        on = f'"{self.catalog}"."{namespace}"."{name}"'
        headers = {"X-Trino-User": self.user, "X-Trino-Source": "lakegate-engine-probe"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            with httpx2.Client(timeout=_CALL_SECONDS, verify=trust().context, headers=headers) as client:
                return "\n".join(self._result(client, statement) for statement in statements(on))
        except (httpx2.HTTPError, ValueError) as error:
            raise EngineNotReached(f"Trino at {self.url} did not answer: {error}") from None

    def _result(self, client: Any, statement: str) -> str:
        ends = time.monotonic() + SECONDS
        answer = client.post(f"{self.url.rstrip('/')}/v1/statement", content=statement.encode())
        found: list[str] = []
        while True:
            answer.raise_for_status()
            page: Mapping[str, Any] = answer.json()
            found += [" ".join(map(str, row)) for row in page.get("data", ())]
            if "error" in page:
                found.append(str(page["error"].get("message")))
            if "nextUri" not in page:
                return "\n".join(found)
            if time.monotonic() > ends:
                raise EngineNotReached(f"Trino at {self.url} did not finish a statement in {SECONDS:g} seconds")
            answer = client.get(page["nextUri"])


def statements(table: str) -> Sequence[str]:
    """Return the statements of a probe for SQL engines. `table` is its quoted name. Errors are expected."""
    from gateway.verification.engine_reads import STATEMENTS

    return [each.format(table) for each in STATEMENTS]
