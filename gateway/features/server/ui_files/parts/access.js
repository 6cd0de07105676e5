// SPDX-License-Identifier: Apache-2.0
// The rights on an object: direct grants, inherited ones, a matrix, former ones, and who can do what.

import { LitElement, html, nothing } from "lit";

import { get, pages } from "../core/api.js";
import { csv, download } from "../core/csv.js";
import { managementPath, nameOf } from "../core/objects.js";
import { roleNames, typed } from "../core/role-names.js";
import { address, current, setState } from "../core/router.js";
import { inProject, openGrant, openRevoke, privilegesOf } from "./grant-dialog.js";
import { problem } from "./problem.js";
import { badge, identityOf, principal, when } from "./small.js";
import { openRequest, requestable } from "./request-dialog.js";
import "./long-list.js";
import "./stewardship.js";
import "./who-can.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

const VIEWS = { direct: "Direct", inherited: "Inherited", matrix: "Matrix", history: "Former" };
const PROTECTED = new Set(["warehouse", "namespace"]);
const MATRIX_ROWS = 2000;
const FILE_ROWS = 100_000;

/** The rights on `on`. `view` is one of VIEWS, `who` selects a principal. */
class Access extends LitElement {
  static properties = { on: { attribute: false }, view: {}, who: {}, source: { state: true }, all: { state: true }, privileges: { state: true }, failure: { state: true }, notice: { state: true } };

  constructor() {
    super();
    /** @type {Thing | null} */
    this.on = null;
    this.view = "direct";
    this.who = "";
    /** @type {import("./long-list.js").Source | null} */
    this.source = null;
    /** All grants, for the matrix. @type {{rows: any[], more: boolean} | null} */
    this.all = null;
    /** @type {any[]} */
    this.privileges = [];
    /** @type {unknown} */
    this.failure = null;
    this.notice = "";
  }

  createRenderRoot() {
    return this;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (["on", "view", "who"].some((each) => changed.has(each))) {
      this.refresh();
    }
  }

  /** Read the list of this view again. */
  refresh() {
    this.failure = null;
    this.all = null;
    void this.attempt(async () => (this.privileges = await privilegesOf(this.object)));
    this.source = this.view === "direct" ? this.list("grants") : this.view === "history" ? this.list("grants/history") : null;
    if (this.view === "matrix") {
      void this.attempt(async () => (this.all = await this.everything(MATRIX_ROWS)));
    }
  }

  get object() {
    return /** @type {Thing} */ (this.on);
  }

  /** @param {() => Promise<unknown>} run */
  async attempt(run) {
    try {
      await run();
    } catch (error) {
      this.failure = error;
    }
  }

  /** Return the path of a list of grants, with the filter by principal. @param {string} list @param {number} size */
  listPath(list, size) {
    const { user, role } = this.who === "" ? { user: undefined, role: undefined } : /** @type {any} */ (identityOf(this.who));
    const filter = user ? `&principalUser=${encodeURIComponent(user)}` : role ? `&principalRole=${encodeURIComponent(role)}` : "";
    return `${managementPath(this.object)}/${list}?pageSize=${size}${filter}`;
  }

  /** @param {any[]} grants */
  async named(grants) {
    const names = await roleNames(grants.map((each) => each.principal), this.object.project ?? inProject(this.object).project);
    return grants.map((each) => ({ ...each, name: names.get(each.principal.role ?? "") ?? "" }));
  }

  /** @param {string} list @returns {import("./long-list.js").Source} */
  list(list) {
    return async (token) => {
      const answer = await get(this.listPath(list, 500) + (token === null ? "" : "&pageToken=" + encodeURIComponent(token)), inProject(this.object));
      return { rows: await this.named(answer.grants), next: answer["next-page-token"] ?? null };
    };
  }

  /** @param {number} most */
  async everything(most) {
    const { rows, more } = await pages(this.listPath("grants", 1000), "grants", { ...inProject(this.object), most });
    return { rows: await this.named(rows), more };
  }

  async save() {
    const { rows } = await this.everything(FILE_ROWS);
    const head = ["object", "privilege", "principal", "name", "granted by", "granted at", "reason", "ends"];
    const lines = rows.map((each) => [nameOf(this.object), each.privilege, typed(each.principal), each.name, each["granted-by"], each["created-at"], each.reason, each["expires-at"]]);
    download(`grants-${nameOf(this.object)}.csv`, csv(head, lines));
  }

  /** @param {string} name */
  info(name) {
    return this.privileges.find((each) => each.privilege.name === name)?.privilege;
  }

  async grant() {
    if (await openGrant(this.object, this.privileges)) {
      this.notice = "The grant was made.";
      this.refresh();
    }
  }

  async request() {
    if (await openRequest(requestable(this.object), nameOf(this.object))) {
      this.notice = "The request was sent. It is in the list “Requests”.";
    }
  }

  /** @param {any} row */
  async revoke(row) {
    if (await openRevoke(this.object, row, row.name)) {
      this.notice = "The grant was revoked.";
      this.refresh();
    }
  }

  columns() {
    const shared = [
      { label: "Privilege", draw: (/** @type {any} */ row) => html`<span title=${this.info(row.privilege)?.description ?? ""}>${this.info(row.privilege)?.["display-name"] ?? row.privilege}</span>
          ${row.recognized === false ? badge("without effect", "warn") : nothing}${row.resource.column ? html` on column <code>${row.resource.column}</code>` : nothing}` },
      { label: "Principal", width: "minmax(9rem, 1.5fr)", draw: (/** @type {any} */ row) => html`${principal(row.principal)} ${row.name}${row["acts-for"] ? badge("acts for others", "warn") : nothing}` },
      { label: "Granted by", draw: (/** @type {any} */ row) => html`<code>${row["granted-by"]}</code>` },
      { label: "When", draw: (/** @type {any} */ row) => when(row["created-at"]) },
      { label: "Reason", draw: (/** @type {any} */ row) => html`<span title=${row.reason ?? ""}>${row.reason ?? "—"}</span>` },
    ];
    if (this.view === "history") {
      return [
        ...shared,
        { label: "Ended", draw: (/** @type {any} */ row) => when(row["ended-at"]) },
        { label: "Because", draw: (/** @type {any} */ row) => html`${row["ended-because"]}${row["ended-by"] ? html` by <code>${row["ended-by"]}</code>` : nothing}` },
      ];
    }
    return [
      ...shared,
      { label: "Ends", draw: (/** @type {any} */ row) => when(row["expires-at"], "never") },
      {
        label: "Change",
        width: "6.5rem",
        draw: (/** @type {any} */ row) =>
          html`<button type="button" class="small" aria-label="Revoke ${row.privilege} of ${typed(row.principal)}" ?disabled=${!this.may(row.privilege)}
            title=${this.may(row.privilege) ? "" : "You may not grant this privilege here, so you may not revoke it."} @click=${() => this.revoke(row)}>Revoke</button>`,
      },
    ];
  }

  /** Return True if the caller may grant a privilege, and so revoke it. @param {string} name */
  may(name) {
    return this.privileges.some((each) => each.privilege.name === name && each.allowed);
  }

  matrix() {
    if (this.all === null) {
      return html`<p class="loading" role="status">Loading …</p>`;
    }
    const categories = [...new Set(this.privileges.map((each) => each.privilege.category))];
    const byPrincipal = Map.groupBy(this.all.rows, (each) => typed(each.principal));
    return html`${this.all.more ? html`<p class="quiet">The first ${MATRIX_ROWS} grants are drawn. Select a principal to see all of its grants.</p>` : nothing}
      <table>
        <caption>Direct grants by kind of privilege</caption>
        <thead><tr><th scope="col">Principal</th>${categories.map((each) => html`<th scope="col">${each}</th>`)}</tr></thead>
        <tbody>
          ${[...byPrincipal.values()].map(
            (rows) => html`<tr><th scope="row">${principal(rows[0].principal)} ${rows[0].name}</th>
              ${categories.map((category) => html`<td>${rows.filter((each) => this.info(each.privilege)?.category === category).map((each) => html`${this.info(each.privilege)["display-name"]}${each["expires-at"] ? html` <span class="quiet">until ${when(each["expires-at"])}</span>` : nothing}<br />`)}</td>`)}
            </tr>`,
          )}
        </tbody>
      </table>`;
  }

  /** @param {SubmitEvent} event */
  select(event) {
    event.preventDefault();
    const { who } = /** @type {any} */ (Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (event.target))));
    setState({ who });
  }

  body() {
    switch (this.view) {
      case "inherited":
        return html`<lg-who-can inherited .on=${this.on} action=${current().query.action ?? ""}></lg-who-can>`;
      case "matrix":
        return this.matrix();
      default:
        return html`<lg-long-list label=${this.view === "direct" ? "Direct grants" : "Former grants"} .source=${this.source} .columns=${this.columns()}
          .empty=${this.view === "direct" ? "No grant is made on this object itself. Rights can come from an object above: see “Inherited”." : "No grant on this object has ended."}></lg-long-list>`;
    }
  }

  render() {
    const { kind, parts, query } = current();
    const any = this.privileges.some((each) => each.allowed);
    return html`<nav class="buttons" aria-label="Kinds of rights">
        ${Object.entries(VIEWS).map(([view, label]) => html`<a class="button" href=${address(kind, parts, { ...query, view, action: null })} aria-current=${view === this.view ? "page" : "false"}>${label}</a>`)}
      </nav>
      <div class="question">
        <button type="button" class="primary" id="grant" ?disabled=${!any} title=${any ? "" : "You may grant nothing here: ask a principal that manages grants."} @click=${this.grant}>Grant …</button>
        ${this.object.type === "server" ? nothing : html`<button type="button" @click=${this.request}>Request access …</button>`}
        <button type="button" @click=${() => this.attempt(() => this.save())}>Download CSV</button>
        ${this.view === "inherited"
          ? nothing
          : html`<form class="question" @submit=${this.select}>
              <lg-principal-picker name="who" label="Only of" optional .value=${this.who} .project=${this.object.project}></lg-principal-picker>
              <button type="submit">Show</button>
            </form>`}
      </div>
      <p role="status">${this.notice}</p>
      ${this.failure === null ? this.body() : problem(this.failure)}
      ${PROTECTED.has(this.object.type) ? html`<lg-protection .on=${this.on}></lg-protection>` : nothing}`;
  }
}

customElements.define("lg-access", Access);

/** Return the tabs about the rights on an object, for `tabs`. @param {Thing} on */
export function accessTabs(on) {
  const { query } = current();
  return {
    access: { label: "Access", draw: () => html`<lg-access .on=${on} view=${query.view ?? "direct"} who=${query.who ?? ""}></lg-access>` },
    "who-can": { label: "Who can", draw: () => html`<lg-who-can .on=${on} action=${query.action ?? ""} expand=${query.expand ?? ""}></lg-who-can>` },
  };
}
