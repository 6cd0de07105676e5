# SPDX-License-Identifier: Apache-2.0
"""The revisions of the schema, and the files that databases of these revisions depend on."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from gateway.db import migrate
from gateway.db.schema.sql_functions import definitions

#: SHA-256 of the first schema, and of the functions whose results are stored.
UNCHANGING = {
    "migrations/versions/first_schema.sql": "91c367a61b561c2925faeb01c41e6d7d6769ea75fb84e2c5d9f9999eea4cdf8c",
    "schema/functions/search.sql": "243b6e82e54454e29b8ccfc10ae09460d65f3bde530eab80d9109762962cdc7d",
}

#: The last revision that changed functions or triggers, and a digest of all of them.
FUNCTIONS = ("0063", "333b4e6200895c234be58c6e5bb36060bc609f581d92705efa6d5d8059d14f12")


def test_migration_file_names_give_the_revisions_that_alembic_finds() -> None:
    scripts = ScriptDirectory.from_config(migrate._config())
    assert {script.revision for script in scripts.walk_revisions()} == migrate._known()
    assert scripts.get_heads() == [max(migrate._known())]


def test_a_worker_does_not_import_alembic_or_mako() -> None:
    program = "import sys, gateway.app; print([name for name in ('alembic', 'mako') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("file", UNCHANGING)
def test_what_databases_store_never_changes(file: str) -> None:
    """Databases with this revision exist, so a change must be a new migration that they receive too."""
    assert hashlib.sha256((files("gateway.db") / file).read_bytes()).hexdigest() == UNCHANGING[file]


def test_changed_functions_have_a_revision_of_their_own() -> None:
    """Without one, a version with other functions accepts the database, and its migration would replace them.

    Add a migration, which may be empty, and state it here with the digest.
    """
    revision, digest = FUNCTIONS
    assert hashlib.sha256("".join(each.comment for each in definitions()).encode()).hexdigest() == digest
    assert revision in migrate._known()


def test_every_function_file_states_its_invariant_which_architecture_md_lists() -> None:
    page = Path("ARCHITECTURE.md").read_text()
    stated = {
        file.name: "-- Invariant: " in file.read_text() for file in (files("gateway.db.schema") / "functions").iterdir()
    }
    stated.pop("search.sql")
    assert all(stated.values())
    for name in ("search.sql", *stated):
        (row,) = re.findall(rf"^\| `{name}` \|.*$", page, re.MULTILINE)
        for test in re.findall(r"`(tests/[^`]+)`", row):
            assert Path(test).exists()
    triggers = {each.name.split()[1] for each in definitions() if each.name.startswith("trigger")}
    assert len(triggers) > 30
