# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate data-policy``: write, bind and inspect data policies (masks and row filters)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from gateway.apply.client import RESTRICTED
from gateway.cli.catalog_client import ReferenceType, target_of
from gateway.cli.data_policy_previews import UNKNOWN, preview, view
from gateway.cli.management import Management, line, printable, with_api

_FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
_ON = click.option(
    "--on",
    "objects",
    multiple=True,
    required=True,
    metavar="OBJECT",
    help="An object by its name, such as tag/pii, warehouse/demo or table/demo/hr.people, or by ids; or "
    "name/WAREHOUSE-ID/LEVEL/…/NAME, where * and ? are wildcards. May be repeated.",
)


@click.group("data-policy")
def data_policy() -> None:
    """Create, bind and inspect data policies: masks of columns and row filters."""


data_policy.add_command(preview)
data_policy.add_command(view)


@data_policy.command()
@_FILE
def validate(file: Path) -> None:
    """Check the definition in FILE (JSON) without a gateway. Print the position of each problem."""
    _definition(file)
    click.echo(f"{file}: valid")


@data_policy.command()
@click.argument("name")
@_FILE
@click.option("--description", help="Text for administrators.")
@click.option("--subjects-only", is_flag=True, help="Restrict only holders of the privilege subject.")
@click.option("--allow-append", is_flag=True, help="Restricted principals may append rows through an enforcer.")
@with_api()
def create(
    name: str,
    file: Path,
    description: str | None,
    subjects_only: bool,
    allow_append: bool,
    api: Management,
) -> None:
    """Create the data policy NAME with the definition in FILE (JSON). It restricts nothing before it is bound."""
    body = _body(name, _definition(file), description, subjects_only, allow_append)
    made = api.send("POST", "/data-policy", body=body).json()
    click.echo(f"created {printable(name)}: {made['id']}")


@data_policy.command("list")
@click.option("--table", metavar="WAREHOUSE/NAMESPACE.NAME", help="List the policies of this table instead.")
@click.option("--user", help="With --table: id of the user whom the effect is about. Default: you.")
@with_api()
def list_policies(table: str | None, user: str | None, api: Management) -> None:
    """List the data policies of the project: id, version, kind and name, separated by tabs.

    With --table: id, kind, effect on the user, bound objects, and the name if you may read the policy.
    """
    if table is not None:
        click.echo("".join(f"{each}\n" for each in _lines_of_table(api, table, user)), nl=False)
        return
    if user is not None:
        raise click.UsageError("--user needs --table")
    for each in api.pages("/data-policy", "data-policies"):
        kind = each["definition"]["kind"]
        click.echo(line(each["id"], each["version"], kind, each["name"]))


@data_policy.command()
@click.argument("policy")
@with_api()
def show(policy: str, api: Management) -> None:
    """Print the data policy POLICY (name or id) and its bindings as JSON."""
    found = api.send("GET", policy_path(api, policy)).json()
    bindings = list(api.pages(f"/data-policy/{found['id']}/bindings", "bindings"))
    click.echo(json.dumps({"data-policy": found, "bindings": bindings}, indent=2))


@data_policy.command()
@click.argument("policy")
@_FILE
@click.option("--reason", help="Reason, kept in the history.")
@with_api()
def update(policy: str, file: Path, reason: str | None, api: Management) -> None:
    """Write a new version of POLICY with the definition in FILE (JSON). All other fields stay as they are."""
    definition = _definition(file)
    path = policy_path(api, policy)
    before = api.send("GET", path).json()
    kept = {key: before[key] for key in ("name", "description", "applies-to", "allow-append") if key in before}
    body = {**kept, "definition": definition, "if-version": before["version"]}
    after = api.send("PUT", path, body=body | ({"reason": reason} if reason else {})).json()
    click.echo(f"version {after['version']} of {printable(after['name'])}")


@data_policy.command()
@click.argument("policy")
@click.option("--force", is_flag=True, help="Delete it also if it is bound.")
@with_api()
def delete(policy: str, force: bool, api: Management) -> None:
    """Delete the data policy POLICY (name or id)."""
    api.send("DELETE", policy_path(api, policy), query={"force": str(force).lower()})
    click.echo(f"deleted {printable(policy)}")


@data_policy.command()
@click.argument("policy")
@_ON
@click.option("--dry-run", is_flag=True, help="Bind nothing. List the affected tables as `affected` would.")
@with_api()
def bind(policy: str, objects: tuple[str, ...], dry_run: bool, api: Management) -> None:
    """Bind POLICY to each --on. It applies to all tables there immediately, also to you unless you are exempt."""
    body, path = _changes(api, "add", objects), f"{policy_path(api, policy)}/bindings"
    page: str | None = ""
    restricts: object = None
    while dry_run and page is not None:
        query = {"pageToken": page} if page else {}
        answer = api.send("POST", f"{path}/dry-run", body=body, query=query).json()
        for each in _lines_of_affected(answer["tables"]):
            click.echo(each)
        page, restricts = answer.get("next-page-token"), answer.get("restricts-caller")
    if not dry_run:
        api.send("POST", path, body=body)
        click.echo(f"bound to {', '.join(map(printable, objects))}")
    elif restricts:
        click.echo(f"warning: {RESTRICTED}", err=True)


@data_policy.command()
@click.argument("policy")
@_ON
@with_api()
def unbind(policy: str, objects: tuple[str, ...], api: Management) -> None:
    """Unbind POLICY from each --on."""
    api.send("POST", f"{policy_path(api, policy)}/bindings", body=_changes(api, "remove", objects))
    click.echo(f"unbound from {', '.join(map(printable, objects))}")


@data_policy.command()
@click.argument("policy")
@click.option("--user", "users", multiple=True, help="Id of a user. May be repeated.")
@click.option("--role", "roles", multiple=True, type=click.UUID, help="Id of a role. May be repeated.")
@click.option("--reason", help="Reason, kept with the grant.")
@click.option("--remove", is_flag=True, help="Remove the exemption.")
@with_api()
def exempt(
    policy: str,
    users: tuple[str, ...],
    roles: tuple[UUID, ...],
    reason: str | None,
    remove: bool,
    api: Management,
) -> None:
    """Exempt users and roles from POLICY, so that it never restricts them."""
    principals = [{"user": each} for each in users] + [{"role": str(each)} for each in roles]
    if not principals:
        raise click.UsageError("give at least one --user or --role")
    entries = [
        {"privilege": "exempt", "principal": each} | ({"reason": reason} if reason and not remove else {})
        for each in principals
    ]
    api.send("POST", f"{policy_path(api, policy)}/grants", body={"deletes" if remove else "writes": entries})
    click.echo("removed" if remove else "exempt")
    if roles and not remove:
        click.echo("the owners of a role are its members: the creator of the role is exempt too", err=True)


@data_policy.command()
@click.argument("policy")
@with_api()
def history(policy: str, api: Management) -> None:
    """List the versions of POLICY, newest first: version, time, author and reason, separated by tabs."""
    for each in api.pages(f"{policy_path(api, policy)}/version", "versions"):
        click.echo(line(each["version"], each["changed-at"], each["changed-by"], each.get("reason", "")))


@data_policy.command()
@click.argument("policy")
@with_api()
def affected(policy: str, api: Management) -> None:
    """List the tables that POLICY has an effect on, each with a principal that it restricts there, separated by tabs.

    The last part is the effect: masked columns, columns that a filter tests, or `no data`. A line with `lost` is an
    object with a name that the policy restricted more before.
    """
    for each in _lines_of_affected(api.pages(f"{policy_path(api, policy)}/affected", "tables")):
        click.echo(each)


def _lines_of_affected(tables: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each table and principal in a response about affected tables."""
    for table in tables:
        name = printable(".".join(filter(None, (*table["namespace"], table["name"]))))
        lost = [{"type": "lost", "id": table["type"]}] if table.get("lost") else []
        for each in [*lost, *table["principals"]] or [{"type": "-", "id": "-"}]:
            yield line(table["table-id"], name, each["type"], each["id"], _effect(table))


def _effect(table: Mapping[str, Any]) -> str:
    """Return the effect of a policy on an affected table as text on one line."""
    parts = [f"{each['action']}: {each['name']}" for each in table.get("masked-columns", ())]
    if table.get("filtered-columns"):
        parts.append(f"filter: {', '.join(table['filtered-columns'])}")
    if table.get("hides-all-rows"):
        parts.append("no rows")
    if table.get("refused"):
        parts.append("no data")
    return printable("; ".join(parts) or "-")


@data_policy.command()
@click.argument("policy")
@with_api()
def alerts(policy: str, api: Management) -> None:
    """List the tables to which POLICY could not be applied as written: table, time and problem, separated by tabs."""
    for each in api.send("GET", f"{policy_path(api, policy)}/alerts").json()["alerts"]:
        click.echo(line(each["table-id"], each["last-seen-at"], each["problem"]))


@data_policy.command("test")
@click.option("--warehouse", required=True, type=click.UUID, help="Id of the warehouse.")
@click.option("--table", required=True, type=click.UUID, help="Id of the table.")
@click.option("--user", required=True, help="Id of the user, such as oidc~ann.")
@with_api(project=False)
def show_restrictions(warehouse: UUID, table: UUID, user: str, api: Management) -> None:
    """Print what a user may read of a table: allowed or not, columns, and the row filter and masks in Trino's SQL.

    The caller needs the right to read the assignments of the table, and to read the policies that apply to the user.
    The user is only named: claims and groups in the user's own token are unknown, so tests with claims are false.
    """
    about = {"action": "read_columns", "warehouse-id": str(warehouse), "table-id": str(table)}
    check = {"operation": {"table": {**about, "restrictions": "trino"}}, "identity": {"user": user}}
    (result,) = api.send("POST", "/action/batch-check", body={"checks": [check]}).json()["results"]
    click.echo(json.dumps(result, indent=2))
    click.echo(UNKNOWN, err=True)


def _lines_of_table(api: Management, table: str, user: str | None) -> Iterator[str]:
    """Yield a line for each policy of a table, with its effect on `user`. If that is None, show the effect on the
    caller.
    """
    at = _target(api, f"table/{table}")
    path = f"/warehouse/{at['warehouse-id']}/table/{at['id']}/data-policies"
    query = {} if user is None else {"principalUser": user}
    for each in api.send("GET", path, query=query).json()["data-policies"]:
        effect = "restricts" if each["restricts"] else "exempt" if each["exempt"] else "not a subject"
        places = ",".join(f"{place['type']}/{place['id']}" for place in each["bound-to"])
        yield line(each["id"], each["kind"], effect, places, each.get("name", "-"))


def policy_path(api: Management, policy: str) -> str:
    """Return the path of a policy, which is given by id or name. An unknown name ends the command."""
    return api.path_of("data-policy", "data-policies", policy)


def _changes(api: Management, change: str, objects: tuple[str, ...]) -> dict[str, Any]:
    """Return the request body for a change of bindings. `change` is `add` or `remove`."""
    unique = dict.fromkeys(objects)
    return {
        change: [_target(api, each) for each in unique if not each.startswith("name/")],
        f"{change}-names": [_name(each) for each in unique if each.startswith("name/")],
    }


def _target(api: Management, text: str) -> dict[str, str]:
    """Return the object in `--on` in the form of the API."""
    kind, *ids = text.split("/")
    try:
        found = [str(UUID(each)) for each in ids]
    except ValueError:
        found = []
    match kind, found:
        case ("warehouse" | "namespace" | "tag", [id]):
            return {"type": kind, "id": id}
        case ("table" | "generic-table", [warehouse, id]):
            return {"type": kind, "id": id, "warehouse-id": warehouse}
    return target_of(api, ReferenceType().convert(text, None, None))


def _name(text: str) -> dict[str, Any]:
    """Return the name in `--on` in the form of the API. No level of the name may contain a slash."""
    match text.split("/")[1:]:
        case [warehouse, *namespace, name] if namespace:
            return {"warehouse-id": warehouse, "namespace": namespace, "name": name}
        case _:
            raise click.UsageError(f"{text}: write name/WAREHOUSE-ID/LEVEL/…/NAME")


def _definition(file: Path) -> Mapping[str, Any]:
    """Read the definition in a file. If it is unreadable or invalid, end the command with the positions of its
    problems.
    """
    import msgspec

    from gateway.obligations.data_policies import Definition
    from gateway.obligations.validation import problems_of
    from lakegate.value_messages import in_words

    try:
        text = file.read_bytes()
    except OSError as error:
        raise click.ClickException(f"{file} cannot be read: {error.strerror}") from None
    try:
        definition = msgspec.json.decode(text, type=Definition)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise click.ClickException(f"{file}: {in_words(error, Definition)}") from None
    problems = problems_of(definition, None)
    if problems:
        places = "\n".join(printable(f"{each.pointer or '/'}: {each.problem}") for each in problems)
        raise click.ClickException(f"{file} is invalid\n{places}")
    found: Mapping[str, Any] = msgspec.to_builtins(definition)
    return found


def _body(
    name: str, definition: Mapping[str, Any], description: str | None, subjects_only: bool, allow_append: bool
) -> dict[str, Any]:
    body: dict[str, Any] = {"name": name, "definition": definition, "allow-append": allow_append}
    body["applies-to"] = "subjects" if subjects_only else "everyone"
    return body if description is None else {**body, "description": description}
