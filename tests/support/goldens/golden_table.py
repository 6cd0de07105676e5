# SPDX-License-Identifier: Apache-2.0
"""The golden table: effects of each relation, after the relationship model of Lakekeeper.

One source for three uses: the model's tests (`fga_model/tests/golden.fga.yaml`), the table in `docs/relationship-
model.md`, and requests over HTTP (`tests/contract/test_golden_matrix.py`). `test_golden_table.py` generates and
compares the first two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A kind of effect: `on` is the letter of an object below, `actions` are all allowed or all denied."""

    title: str
    on: str
    actions: tuple[str, ...]


#: P project, W warehouse, N namespace in it, T a table in the namespace, T2 another table of it, H the object that the
#: privilege is held on (W if it is held on the project or the server).
COLUMNS: tuple[Column, ...] = (
    Column("see W", "W", ("can_get_metadata", "can_get_config", "can_include_in_list", "can_list_namespaces")),
    Column("see N", "N", ("can_get_metadata", "can_include_in_list", "can_list_tables")),
    Column("see T", "T", ("can_get_metadata",)),
    Column("see T2", "T2", ("can_get_metadata",)),
    Column("list T", "T", ("can_include_in_list",)),
    Column("list T2", "T2", ("can_include_in_list",)),
    Column("T: read data", "T", ("can_read_data",)),
    Column("T: write, commit, rename, drop", "T", ("can_write_data", "can_commit", "can_rename", "can_drop")),
    Column("T: move to another namespace", "T", ("can_move",)),
    Column("N: create in it", "N", ("can_create_table", "can_create_view", "can_create_namespace")),
    Column("N: update, delete", "N", ("can_update_properties", "can_delete")),
    Column("W: create in it", "W", ("can_create_namespace",)),
    Column("W: rename, soft deletion, delete", "W", ("can_rename", "can_modify_soft_deletion", "can_delete")),
    Column("W: storage", "W", ("can_update_storage", "can_adopt_files")),
    Column("hand out the same", "H", ()),
    Column("hand out any", "H", ("can_grant_manage_grants", "can_grant_pass_grants", "can_change_ownership")),
    Column("see who holds what", "H", ("can_read_assignments",)),
    Column("P: hand out rights", "P", ("can_grant_select", "can_grant_create", "can_grant_data_admin")),
)


@dataclass(frozen=True)
class Row:
    """The holder of `privileges` on the object of the letter `on`, and Y or - for each column."""

    on: str
    privileges: tuple[str, ...]
    cells: str

    @property
    def title(self) -> str:
        """Return the title of the row."""
        return f"{' + '.join(self.privileges)} on {NAMES[self.on]}"

    @property
    def user(self) -> str:
        """Return the name of the holder in the model's tests."""
        return f"{self.on.lower()}_{'_and_'.join(self.privileges)}"

    def holds(self, column: Column) -> bool:
        """Return the expected value of a cell."""
        return self.cells[COLUMNS.index(column)] == "Y"

    def questions(self, column: Column) -> tuple[tuple[str, str], ...]:
        """Return (letter of the object, action) of the checks behind a cell."""
        if column.title == "hand out the same":
            return ((self.on, granting(self.privileges[0])),)
        at = column.on if column.on != "H" else self.on if self.on in ("W", "N", "T") else "W"
        return tuple((at, action) for action in column.actions)


NAMES = {"S": "the server", "P": "the project", "W": "W", "N": "N", "T": "T", "-": "nothing"}


def granting(privilege: str) -> str:
    """Return the right that granting `privilege` requires."""
    return "can_change_ownership" if privilege == "ownership" else f"can_grant_{privilege}"


def _rows() -> Iterator[Row]:
    # columns:                                       sees   rwm c u c ch st grants
    #                                                WNTtTt T   N N W W  W  sam P
    for row in (
        ("S", "admin", "------ --- - - - - - Y-- Y"),
        ("S", "operator", "YYYYYY YYY Y Y Y Y Y YYY Y"),
        ("S", "provisioner", "------ --- - - - - - --- -"),
        ("S", "policy_reader", "------ --- - - - - - --- -"),
        ("S", "auditor", "YY--YY --- - - - - - --Y -"),
        ("P", "project_admin", "YYYYYY YYY Y Y Y Y Y YYY Y"),
        ("P", "security_admin", "YYYYYY --- - - - - - YYY Y"),
        ("P", "data_admin", "YYYYYY YY- Y Y Y Y - --- -"),
        ("P", "role_creator", "------ --- - - - - - --- -"),
        ("P", "tag_creator", "------ --- - - - - - --- -"),
        ("P", "delegate", "------ --- - - - - - --- -"),
        ("P", "enforcer", "------ --- - - - - - --- -"),
        ("P", "inspector", "------ --- - - - - - --- -"),
        ("P", "approve_changes", "YYYYYY --- - - - - - --- -"),
        ("P", "auditor", "YY--YY --- - - - - - --Y -"),
        ("P", "describe", "YYYYYY --- - - - - - --- -"),
        ("P", "select", "YYYYYY Y-- - - - - - --- -"),
        ("P", "create", "YYYYYY --- Y - Y - - --- -"),
        ("P", "modify", "YYYYYY YY- - Y - Y - --- -"),
        ("W", "describe", "YYYYYY --- - - - - - --- -"),
        ("W", "describe pass_grants", "YYYYYY --- - - - - - Y-Y -"),
        ("W", "select", "YYYYYY Y-- - - - - - --- -"),
        ("W", "select pass_grants", "YYYYYY Y-- - - - - - Y-Y -"),
        ("W", "create", "YYYYYY --- Y - Y - - --- -"),
        ("W", "create pass_grants", "YYYYYY --- Y - Y - - Y-Y -"),
        ("W", "modify", "YYYYYY YY- - Y - Y - --- -"),
        ("W", "modify pass_grants", "YYYYYY YY- - Y - Y - Y-Y -"),
        ("W", "pass_grants", "------ --- - - - - - --- -"),
        ("W", "manage_grants", "------ --- - - - - - YYY -"),
        ("W", "manage_tags", "------ --- - - - - - --- -"),
        ("W", "delegate", "------ --- - - - - - --- -"),
        ("W", "enforcer", "------ --- - - - - - --- -"),
        ("W", "inspector", "------ --- - - - - - --- -"),
        ("W", "manage_storage", "Y----- --- - - - - Y --- -"),
        ("W", "approve_changes", "YYYYYY --- - - - - - --- -"),
        ("W", "auditor", "YY--YY --- - - - - - --Y -"),
        ("W", "break_glass", "------ --- - - - - - --- -"),
        ("W", "requester", "------ --- - - - - - --- -"),
        ("W", "ownership", "YYYYYY YYY Y Y Y Y - YYY -"),
        ("N", "describe", "YYYYYY --- - - - - - --- -"),
        ("N", "describe pass_grants", "YYYYYY --- - - - - - Y-Y -"),
        ("N", "select", "YYYYYY Y-- - - - - - --- -"),
        ("N", "select pass_grants", "YYYYYY Y-- - - - - - Y-Y -"),
        ("N", "create", "YYYYYY --- Y - - - - --- -"),
        ("N", "create pass_grants", "YYYYYY --- Y - - - - Y-Y -"),
        ("N", "modify", "YYYYYY YY- - Y - - - --- -"),
        ("N", "modify pass_grants", "YYYYYY YY- - Y - - - Y-Y -"),
        ("N", "pass_grants", "------ --- - - - - - --- -"),
        ("N", "manage_grants", "------ --- - - - - - YYY -"),
        ("N", "manage_tags", "------ --- - - - - - --- -"),
        ("N", "enforcer", "------ --- - - - - - --- -"),
        ("N", "approve_changes", "YYYYYY --- - - - - - --- -"),
        ("N", "break_glass", "------ --- - - - - - --- -"),
        ("N", "requester", "------ --- - - - - - --- -"),
        ("N", "ownership", "YYYYYY YYY Y Y - - - YYY -"),
        ("T", "describe", "YYY-Y- --- - - - - - --- -"),
        ("T", "describe pass_grants", "YYY-Y- --- - - - - - Y-Y -"),
        ("T", "select", "YYY-Y- Y-- - - - - - --- -"),
        ("T", "select pass_grants", "YYY-Y- Y-- - - - - - Y-Y -"),
        ("T", "modify", "YYY-Y- YY- - - - - - --- -"),
        ("T", "modify pass_grants", "YYY-Y- YY- - - - - - Y-Y -"),
        ("T", "pass_grants", "------ --- - - - - - --- -"),
        ("T", "manage_grants", "------ --- - - - - - YYY -"),
        ("T", "manage_tags", "------ --- - - - - - --- -"),
        ("T", "modify manage_grants", "YYY-Y- YYY - - - - - YYY -"),
        ("T", "enforcer", "------ --- - - - - - --- -"),
        ("T", "approve_changes", "YYY-Y- --- - - - - - --- -"),
        ("T", "ownership", "YYY-Y- YYY - - - - - YYY -"),
    ):
        yield Row(row[0], tuple(row[1].split()), row[2].replace(" ", ""))


ROWS: tuple[Row, ...] = tuple(_rows())

# ---- the objects of the model's tests ----

OBJECTS = {
    "S": "server:golden",
    "P": "project:golden",
    "W": "warehouse:golden",
    "N": "namespace:golden",
    "T": "table:golden",
    "T2": "table:beside",
}
_EDGES = (
    ("server:golden", "server", "project:golden"),
    ("project:golden", "project", "warehouse:golden"),
    ("warehouse:golden", "parent", "namespace:golden"),
    ("namespace:golden", "parent", "table:golden"),
    ("namespace:golden", "parent", "table:beside"),
)
_ABOVE = {"W": ("P",), "N": ("P", "W"), "T": ("P", "W", "N")}
_REASONS = frozenset({"describe", "select", "create", "modify", "approve_changes", "auditor", "ownership"})


def render_fga() -> str:
    """Return `fga_model/tests/golden.fga.yaml`.

    Each row is tested for a user, for a member of a role within the role that holds it, and for the owner of that role.
    All of them get the same answers.
    """
    lines = [_FGA_HEAD, "tuples:"]
    lines += [f"  - {_written(*edge)}" for edge in _EDGES]
    lines.append("tests:")
    for row in ROWS:
        # Each test has only the tuples of its row: with all tuples a check takes twenty times as long.
        lines += [f"  - name: {row.title}", "    tuples:"]
        lines += [f"      - {_written(*each)}" for each in _tuples(row)]
        lines.append("    check:")
        requested: dict[str, dict[str, bool]] = {}
        for column in COLUMNS:
            for letter, action in row.questions(column):
                holds = requested.setdefault(OBJECTS[letter], {})
                if holds.setdefault(action, row.holds(column)) != row.holds(column):
                    raise ValueError(f"the row {row.title!r} has two values for {action} on {letter}")
        for object, answers in requested.items():
            answer_text = ", ".join(f"{action}: {str(holds).lower()}" for action, holds in answers.items())
            lines += [
                f"      - users: [{', '.join(_holders(row))}]",
                f"        object: {object}",
                f"        assertions: {{{answer_text}}}",
            ]
    return "\n".join(lines) + "\n"


def _written(user: str, relation: str, object: str) -> str:
    return f'{{user: "{user}", relation: {relation}, object: "{object}"}}'


def _holders(row: Row) -> tuple[str, ...]:
    return tuple(f'"user:{row.user}{how}"' for how in ("", ".nested", ".owner"))


def _tuples(row: Row) -> Iterator[tuple[str, str, str]]:
    role = f"role:{row.user}"
    yield f"{role}.inner#assignee", "assignee", role
    yield f"user:{row.user}.nested", "assignee", f"{role}.inner"
    yield f"user:{row.user}.owner", "ownership", role
    for subject in (f"user:{row.user}", f"{role}#assignee"):
        for privilege in row.privileges:
            yield subject, privilege, OBJECTS[row.on]
        if _REASONS & set(row.privileges):
            for letter in _ABOVE.get(row.on, ()):
                yield subject, "traverse", OBJECTS[letter]


_FGA_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
#
# Generated from tests/support/goldens/golden_table.py by
# `python -m pytest tests/access/test_golden_table.py --update-goldens`.
# Each row is held by a user and by a role, which has an owner and another role with a member in it.
name: golden
model_file: ../fga.mod"""


def render_markdown() -> str:
    """Return the table in `docs/relationship-model.md`: one line for all privileges on an object with equal cells."""
    alternatives: dict[tuple[str, str], list[str]] = {}
    for row in ROWS:
        alternatives.setdefault((row.on, row.cells), []).append(" + ".join(row.privileges))
    lines = [
        f"| held | {' | '.join(column.title for column in COLUMNS)} |",
        f"|--|{'--|' * len(COLUMNS)}",
    ]
    for (on, effects), privileges in alternatives.items():
        cells = (cell if cell == "Y" else "–" for cell in effects)
        lines.append(f"| {', '.join(privileges)} on {NAMES[on]} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
