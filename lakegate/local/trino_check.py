# SPDX-License-Identifier: Apache-2.0
"""Check a bridge by the queries that Trino sends, for ``lakegate trino check``. Nothing is changed.

The bridge is the Rego policies for Trino's access control (`policies/trino/`), in the OPA that Trino queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec

_REQUIRED = ("LAKEGATE_BRIDGE_URL", "LAKEGATE_BRIDGE_CATALOGS")
_CLIENT = ("LAKEGATE_BRIDGE_TOKEN_ENDPOINT", "LAKEGATE_BRIDGE_CLIENT_ID", "LAKEGATE_BRIDGE_CLIENT_SECRET")
_START = "Start it as docs/trino.md describes, with the bundle of `lakegate policy bundle` of this version."


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: if it passed, what was found, and the remedy of a failure."""

    passed: bool
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The Trino user and the objects to check. ``table`` is (schema, table), if given."""

    user: str
    catalog: str
    table: tuple[str, str] | None = None
    columns: Sequence[str] = ()


class _Outcome(msgspec.Struct, frozen=True):
    status: int = -1
    error: str = ""
    source: str = ""


class _State(msgspec.Struct, frozen=True):
    variables: dict[str, str]
    token: _Outcome
    warehouses: dict[str, _Outcome]


class _Expression(msgspec.Struct, frozen=True):
    expression: str


class _Mask(msgspec.Struct, frozen=True):
    index: int
    expression: _Expression = msgspec.field(name="viewExpression")


class _Result(msgspec.Struct, frozen=True):
    result: Any = None


class Unusable(Exception):
    """OPA gave no usable response. The error contains the finding to report."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


class BridgeCheck:
    """Checks one bridge. ``http`` is a client of its OPA, with address, timeout and certificates. ``key`` is its
    secret.
    """

    def __init__(self, http: httpx2.Client, key: str | None, question: Question) -> None:
        self._http = http
        self._params = {} if key is None else {"key": key}
        self._question = question

    def run(self) -> Iterator[Finding]:
        """Yield the findings in the order of the steps. If a step makes the following ones pointless, its finding is
        the last.
        """
        try:
            state = self._state()
            yield Finding(True, "OPA answers, and accepts this client as Trino")
            yield self._protection()
            for step in (_variables(state), _token(state), _warehouse(state, self._question.catalog)):
                findings = list(step)
                yield from findings
                if not all(finding.passed for finding in findings):
                    return
            yield from self._answers()
        except Unusable as unusable:
            yield unusable.finding

    def _state(self) -> _State:
        """Return the state that the bridge reports. Raises Unusable."""
        found = self._query("diagnosis", {})
        try:
            return msgspec.convert(found, _State)
        except msgspec.ValidationError:
            raise Unusable(
                Finding(False, "OPA has no bridge, or one of an earlier version", f"Replace its bundle. {_START}")
            ) from None

    def _query(self, entry: str, action: Mapping[str, Any]) -> Any:
        """Return the result of an entry point of the policies, queried as Trino does. Raises Unusable."""
        identity = {"user": self._question.user, "groups": []}
        body = {
            "input": {"context": {"identity": identity, "softwareStack": {"trinoVersion": "476"}}, "action": action}
        }
        answer = self._send(f"/v1/data/trino/{entry}", body)
        if answer.status_code in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN):
            remedy = (
                "Pass the value of LAKEGATE_BRIDGE_ENGINE_KEY in OPA's environment as --key, or the certificate of "
                "LAKEGATE_BRIDGE_ENGINE_SUBJECT as --cert. OPA refuses every client if it has neither variable."
            )
            raise Unusable(Finding(False, "OPA does not accept this client as Trino", remedy))
        if not answer.is_success:
            raise Unusable(Finding(False, f"OPA answered with status {answer.status_code}", _START))
        try:
            return msgspec.json.decode(answer.content, type=_Result).result
        except msgspec.DecodeError:
            raise Unusable(Finding(False, "the answer is not one of OPA", "Check the address.")) from None

    def _send(self, path: str, body: object, *, with_key: bool = True) -> httpx2.Response:
        try:
            return self._http.post(path, params=self._params if with_key else {}, json=body)
        except httpx2.HTTPError as error:
            # Users may pass the address that Trino uses for this OPA. Its path contains a key, so only scheme and host
            # are shown.
            address = f"{self._http.base_url.scheme}://{self._http.base_url.netloc.decode()}"
            finding = Finding(False, f"OPA does not answer at {address}: {type(error).__name__}", _START)
            raise Unusable(finding) from None

    def _protection(self) -> Finding:
        """Report whether OPA refuses queries that Trino never sends."""
        answer = self._send("/v1/data/trino/names", {}, with_key=False)
        if answer.is_success:
            remedy = (
                "Start it with --authorization=basic and --set=default_authorization_decision=/trino/authz/allow. "
                "Otherwise every client can read the bridge's token."
            )
            return Finding(False, "OPA answers every client", remedy)
        return Finding(True, "OPA refuses other queries")

    def _answers(self) -> Iterator[Finding]:
        """Report the bridge's responses to Trino about the catalog and the table."""
        user, catalog = self._question.user, self._question.catalog
        allowed = self._query("allow", {"operation": "AccessCatalog", "resource": {"catalog": {"name": catalog}}})
        yield Finding(
            allowed is True,
            f"{user} {'may' if allowed is True else 'may not'} use the catalog {catalog}",
            f"Grant {user} a privilege on an object in the warehouse, for example `select` on a table. The user's id "
            "at the gateway must be `<provider>~<name>`, with the provider of LAKEGATE_BRIDGE_PROVIDERS.",
        )
        if allowed is True and self._question.table is not None:
            yield from self._table(*self._question.table)

    def _table(self, schema: str, table: str) -> Iterator[Finding]:
        user, columns = self._question.user, list(self._question.columns)
        name = {"catalogName": self._question.catalog, "schemaName": schema, "tableName": table}
        visible = self._query("batch", {"operation": "FilterTables", "filterResources": [{"table": name}]})
        readable = self._query(
            "allow", {"operation": "SelectFromColumns", "resource": {"table": {**name, "columns": columns}}}
        )
        grant = f"Grant {user} `select` on the table, or check the name. A guardrail can deny it too."
        yield Finding(visible == [0], f"{schema}.{table} is {'' if visible == [0] else 'not '}listed", grant)
        which = ", ".join(columns) or "at least one column"
        yield Finding(readable is True, f"{user} {'may' if readable is True else 'may not'} select {which}", grant)
        if readable is not True and not columns:
            return
        filters = self._expressions("row_filters", {"operation": "GetRowFilters", "resource": {"table": name}})
        hidden = filters == ["false"]
        # The bridge sends each filter of the gateway twice: see `docs/trino.md`.
        shown = "every row is hidden" if hidden else " AND ".join(f"({each})" for each in filters[::2])
        yield Finding(not hidden, f"row filters: {shown or 'none'}", grant)
        if columns:
            yield self._masks(name, columns, readable=readable is True)

    def _masks(self, table: Mapping[str, str], columns: Sequence[str], *, readable: bool) -> Finding:
        """Report the masks of columns. A column that is not ``readable`` has a mask too, which returns NULL."""
        things = [{"column": {**table, "columnName": each, "columnType": "varchar"}} for each in columns]
        found = self._query("batch_column_masks", {"operation": "GetColumnMask", "filterResources": things})
        try:
            masks = msgspec.convert(found or [], list[_Mask])
            texts = {columns[mask.index]: mask.expression.expression for mask in masks}
        except (msgspec.ValidationError, IndexError):
            raise Unusable(Finding(False, "OPA's answer about masks is invalid", _START)) from None
        if readable:
            shown = ", ".join(f"{column} as {text}" for column, text in texts.items())
            return Finding(True, f"masked columns: {shown or 'none'}")
        remedy = f"Grant {self._question.user} `select` on these columns."
        return Finding(not texts, f"columns that read as NULL: {', '.join(texts) or 'none'}", remedy)

    def _expressions(self, entry: str, action: Mapping[str, Any]) -> list[str]:
        """Return the row filter or mask expressions of an entry point. Raises Unusable."""
        try:
            return [each.expression for each in msgspec.convert(self._query(entry, action), list[_Expression])]
        except msgspec.ValidationError:
            raise Unusable(Finding(False, "OPA's answer about row filters is invalid", _START)) from None


def _variables(state: _State) -> Iterator[Finding]:
    needed = [*_REQUIRED, *(_CLIENT if state.token.source != "configured" else ())]
    wrong = {name: "is missing" for name in needed if state.variables.get(name) != "set"}
    wrong |= {name: "is unreadable" for name, found in state.variables.items() if found == "unreadable"}
    for name, fault in wrong.items():
        remedy = "Set it in the environment of OPA, and start OPA again. docs/trino.md describes its form."
        yield Finding(False, f"{name} {fault}", remedy)
    if not wrong:
        yield Finding(True, "the variables of the bridge are set and readable")


def _token(state: _State) -> Iterator[Finding]:
    token = state.token
    if token.source == "configured":
        yield Finding(True, "the bridge has a configured token")
    elif token.source == "fetched" and token.status == httpx2.codes.OK:
        yield Finding(True, "the identity provider issues the bridge a token")
    elif token.source == "fetched" and token.status == 0:
        remedy = "Check LAKEGATE_BRIDGE_TOKEN_ENDPOINT, the network, and LAKEGATE_BRIDGE_CA_FILE."
        yield Finding(False, f"the identity provider does not answer the bridge: {token.error}", remedy)
    elif token.source == "fetched":
        remedy = "Check LAKEGATE_BRIDGE_CLIENT_ID, LAKEGATE_BRIDGE_CLIENT_SECRET and LAKEGATE_BRIDGE_SCOPE."
        found = f"the identity provider refuses the bridge: status {token.status} {token.error}".rstrip()
        yield Finding(False, found, remedy)


def _warehouse(state: _State, catalog: str) -> Iterator[Finding]:
    """Report the gateway's response about one catalog."""
    if catalog not in state.warehouses:
        known = ", ".join(state.warehouses) or "none"
        remedy = f"Add it to LAKEGATE_BRIDGE_CATALOGS with the id of its warehouse. Catalogs there: {known}."
        yield Finding(False, f"the bridge knows no catalog {catalog}", remedy)
        return
    found = state.warehouses[catalog]
    refusal = f"status {found.status} {found.error}".rstrip()
    match found.status:
        case httpx2.codes.OK:
            yield Finding(True, f"the gateway answers the bridge about the warehouse of {catalog}")
        case 0:
            remedy = "Check LAKEGATE_BRIDGE_URL, the network, LAKEGATE_BRIDGE_CA_FILE and LAKEGATE_BRIDGE_TIMEOUT."
            yield Finding(False, f"the gateway does not answer the bridge: {found.error}", remedy)
        case httpx2.codes.UNAUTHORIZED:
            remedy = "Its issuer or audience must be one of the gateway's settings, and it must not have expired."
            yield Finding(False, f"the gateway refuses the bridge's token: {refusal}", remedy)
        case _:
            remedy = (
                "Grant the bridge's client `inspector` on the warehouse or its project. Compare the id in "
                "LAKEGATE_BRIDGE_CATALOGS with `GET /management/v1/warehouse`."
            )
            yield Finding(False, f"the bridge may not query rights in the warehouse of {catalog}: {refusal}", remedy)
