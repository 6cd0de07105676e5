# SPDX-License-Identifier: Apache-2.0
"""Known schema revisions, which a worker process reads from file names and not from Alembic."""

from __future__ import annotations

import subprocess
import sys

from alembic.script import ScriptDirectory

from gateway.db import migrate


def test_migration_file_names_give_the_revisions_that_alembic_finds() -> None:
    scripts = ScriptDirectory.from_config(migrate._config())
    assert {script.revision for script in scripts.walk_revisions()} == migrate._known()
    assert scripts.get_heads() == [max(migrate._known())]


def test_a_worker_does_not_import_alembic_or_mako() -> None:
    program = "import sys, gateway.app; print([name for name in ('alembic', 'mako') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout.strip() == "[]"
