# SPDX-License-Identifier: Apache-2.0
"""Texts for a terminal: the sections of `lakegate --help`, and names of other users without control characters.

click's own formatter writes the sections. rich-click would add 15 ms to each command, and frames around errors in logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

#: The commands of each section, in the order of the page.
SECTIONS: Final[Mapping[str, Sequence[str]]] = {
    "You and your gateways": ("login", "logout", "token", "whoami", "profile", "completion", "version"),
    "Objects": (
        *("projects", "warehouses", "namespaces", "tables", "views", "generic-tables", "roles", "users", "tags"),
        *("data-policies", "mapping-tables", "deleted", "undrop", "tasks", "apply", "export", "verify-scope"),
    ),
    "Access": (
        *("grants", "grant", "revoke", "can", "explain", "who-can", "what-can", "live-credentials"),
        *("request", "requests", "approve", "deny", "withdraw", "access", "break-glass", "changes", "audit"),
    ),
    "Engines and pipelines": ("client", "engine", "trino", "pipeline", "events"),
    "Policies and models": ("policy", "model", "contracts", "init", "conformance"),
    "Run a gateway": (
        *("up", "demo", "setup", "status", "serve", "migrate", "wait-for-db", "healthcheck", "openapi", "authz"),
        *("secrets", "reopen-bootstrap"),
    ),
    "The same objects in lines with tabs": ("warehouse", "tag", "data-policy", "mapping-table"),
}


def write_sections(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the visible commands of a group by section. Commands of no section are in the last one."""
    shown = {name: group.get_command(context, name) for name in group.list_commands(context)}
    visible = {name: each for name, each in shown.items() if each is not None and not each.hidden}
    sections = {title: [name for name in names if name in visible] for title, names in SECTIONS.items()}
    sections["Others"] = [name for name in visible if not any(name in names for names in SECTIONS.values())]
    width = formatter.width - 6 - max(map(len, visible), default=0)
    for title, names in sections.items():
        if names:
            with formatter.section(click.style(title, bold=True)):
                formatter.write_dl([(name, visible[name].get_short_help_str(width)) for name in names])


def printable(text: str) -> str:
    """Return the text with each control character replaced by a space. Control characters could change what a terminal
    shows.
    """
    return "".join(char if char.isprintable() else " " for char in text)


def line(*texts: object) -> str:
    """Return the texts on one line, separated by tabs, for terminals and programs."""
    return "\t".join(printable(str(each)) for each in texts)
