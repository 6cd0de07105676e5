# SPDX-License-Identifier: Apache-2.0
"""Install the SQL functions and triggers of `functions/*.sql`, whose text replaces the one in the database.

Each file describes the invariant that its triggers hold. A change of a file needs a migration, which may be empty: the
functions are installed in the transaction that stamps the newest revision, so that a database of this revision has the
functions of this version. A migration drops functions and triggers that no file contains any more, and functions whose
type changes.

alembic-utils is not used: it copies each text into a migration, and to compare a trigger it drops the trigger in the
database, under a lock on the table.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from sqlalchemy import Connection

_FUNCTIONS: Final = files("gateway.db.schema") / "functions"
#: A statement ends at the end of a line, and the next one begins in the first column.
_BETWEEN_STATEMENTS: Final = re.compile(r"(?<=;)\n+(?=\S)")
_COMMENTS: Final = re.compile(r"\A(?:--.*\n|\n)*")
_FUNCTION: Final = re.compile(r"create or replace (function \w+\([^)]*\)).*?\$\$(.*)\$\$;", re.DOTALL)
_TRIGGER: Final = re.compile(r"create (?:or replace|constraint) (trigger \w+)\s.*?( on \w+)", re.DOTALL)

_INSTALLED: Final = """
    select obj_description(oid, 'pg_proc'), prosrc from pg_proc where pronamespace = current_schema()::regnamespace
    union all
    select obj_description(t.oid, 'pg_trigger'), '' from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = current_schema()::regnamespace and t.tgenabled <> 'D'
"""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or trigger: its name in SQL, its comment in the database, its body, and the statement that creates
    it.
    """

    name: str
    comment: str
    body: str
    statement: str


def statements(script: str) -> list[str]:
    """Return the statements of a script, each without the comments before it."""
    return [_COMMENTS.sub("", each) for each in _BETWEEN_STATEMENTS.split(script.strip())]


def definitions() -> list[Definition]:
    """Return all functions and triggers, in the order in which they can be created."""
    return [
        _definition(file.name, each)
        for file in sorted(_FUNCTIONS.iterdir(), key=lambda file: file.name)
        for each in statements(file.read_text(encoding="utf-8"))
    ]


def _definition(file: str, statement: str) -> Definition:
    comment = f"{file} {hashlib.sha256(statement.encode()).hexdigest()}"
    if found := _FUNCTION.match(statement):
        return Definition(found[1], comment, found[2], statement)
    trigger = _TRIGGER.match(statement)
    if trigger is None:
        raise ValueError(f"{file} has a statement that is no function and no trigger: {statement[:60]}")
    return Definition(trigger[1] + trigger[2], comment, "", statement)


def missing_functions(connection: Connection) -> list[Definition]:
    """Return the functions and triggers that the database lacks, that are disabled, or that have another text there."""
    installed = {(comment, body) for comment, body in connection.exec_driver_sql(_INSTALLED)}
    return [each for each in definitions() if (each.comment, each.body) not in installed]


def install_functions(connection: Connection) -> None:
    """Create or replace the missing functions and triggers."""
    for each in missing_functions(connection):
        if each.statement.startswith("create constraint"):  # a constraint trigger cannot be replaced
            connection.exec_driver_sql(f"drop {each.name.replace('trigger', 'trigger if exists', 1)}")
        connection.exec_driver_sql(each.statement)
        connection.exec_driver_sql(f"comment on {each.name} is '{each.comment}'")
