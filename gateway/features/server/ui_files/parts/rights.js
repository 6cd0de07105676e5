// SPDX-License-Identifier: Apache-2.0
// The grants of a user or a role in a project, and what it can do there, with the reason of each right.

import { LitElement, html, nothing } from "lit";

import { ask, change, get, path } from "../core/api.js";
import { words } from "../core/format.js";
import { managementPath, pageOf, thingOf } from "../core/objects.js";
import { address } from "../core/router.js";
import { openDialog } from "./dialog.js";
import "./long-list.js";
import { problem } from "./problem.js";
import { badge, empty, when } from "./small.js";

/** @typedef {{user?: string, role?: string}} Principal */

/** Link to the object of an answer by its id. `names` has names of objects by id. @param {any} resource @param {Map<string, string>} [names] */
export function resourceLink(resource, names = new Map()) {
  const on = thingOf(resource);
  const kind = on.type.replaceAll("-", " ");
  const name = names.get(on.id) ?? on.id;
  const to = { project: address("project", [on.id]), server: address("server"), role: pageOf(on), warehouse: pageOf({ ...on, name: names.get(on.id) ?? "" }) };
  const link = /** @type {Record<string, string>} */ (to)[on.type];
  const column = resource.column ? html` column ${resource.column}` : nothing;
  return html`${kind} ${link === undefined ? html`<code>${name}</code>` : html`<a href=${link}>${name}</a>`}${column}`;
}

/** Return the path of the grants on an object. @param {any} resource */
function grantsPath(resource) {
  const on = thingOf(resource);
  return managementPath(on) + (resource.column ? path`/columns/${resource.column}` : "") + "/grants";
}

/** Ask, and revoke a grant. @param {any} grant @returns {Promise<boolean>} */
export function revoke(grant) {
  const on = thingOf(grant.resource);
  return openDialog({
    title: "Revoke a grant",
    action: "Revoke",
    danger: true,
    body: html`<p>${grant.privilege} on ${resourceLink(grant.resource)} for ${grant.principal.user ?? grant.principal.role} ends at once.
      Credentials for files that were issued before stay valid until they expire. You can grant it again.</p>`,
    submit: () =>
      change("POST", grantsPath(grant.resource), { deletes: [{ privilege: grant.privilege, principal: grant.principal }] }, on.type === "project" ? { project: on.id } : {}),
  });
}

/** Return a source of the grants of a principal in a project. @param {Principal} principal @param {string} project */
export function grantsOf(principal, project) {
  const who = principal.user !== undefined ? path`principalUser=${principal.user}` : path`principalRole=${principal.role ?? ""}`;
  return async (/** @type {string | null} */ token) => {
    const answer = await get(`/management/v1/grants?${who}&pageSize=200${token === null ? "" : "&pageToken=" + encodeURIComponent(token)}`, { project });
    return { rows: answer.grants, next: answer["next-page-token"] ?? null };
  };
}

/** Draw a list of grants. @param {unknown} source @param {Map<string, string>} names @param {() => void} changed */
export function grantList(source, names, changed) {
  const columns = [
    { label: "Privilege", draw: (/** @type {any} */ each) => html`${each.privilege}${each.recognized ? nothing : badge("not known", "warn")}` },
    { label: "On", draw: (/** @type {any} */ each) => resourceLink(each.resource, names), width: "minmax(12rem, 2fr)" },
    { label: "By", draw: (/** @type {any} */ each) => each["granted-by"] },
    { label: "Since", draw: (/** @type {any} */ each) => when(each["created-at"]), width: "minmax(12rem, 1.4fr)" },
    { label: "Ends", draw: (/** @type {any} */ each) => when(each["expires-at"], "never") },
    { label: "Reason", draw: (/** @type {any} */ each) => each.reason ?? "" },
    {
      label: "Action",
      draw: (/** @type {any} */ each) =>
        html`<button type="button" class="small" @click=${() => void revoke(each).then((done) => done && changed())}>Revoke</button>`,
    },
  ];
  return html`<lg-long-list label="Grants" .source=${source} .columns=${columns} .empty=${"No grant in this project that you may see. Grant a right on the page of an object."}></lg-long-list>`;
}

/** Return a fact of a reason as text. @param {any} fact */
function factText(fact) {
  const who = fact.principal === null || fact.principal === undefined ? "" : (fact.principal.user ?? `role ${fact.principal.role}`);
  switch (fact.fact) {
    case "grant":
      return html`${fact.privilege} on ${fact.resource?.type} for ${who}, by ${fact["granted-by"]}`;
    case "membership":
      return html`${who} is a member of ${resourceLink(fact.resource)}`;
    case "contents":
      return html`a right on something in it`;
    default:
      return html`a grant that you may not see`;
  }
}

/** What a principal can do in a project: one row for each object on which it has rights of its own. */
class WhatCan extends LitElement {
  static properties = { principal: { attribute: false }, project: {}, names: { attribute: false }, rows: { state: true }, next: { state: true }, failure: { state: true }, about: { state: true } };

  constructor() {
    super();
    /** @type {Principal | null} */
    this.principal = null;
    this.project = "";
    /** @type {Map<string, string>} */
    this.names = new Map();
    /** @type {any[] | null} */
    this.rows = null;
    /** @type {string | undefined} */
    this.next = undefined;
    /** @type {unknown} */
    this.failure = null;
    /** @type {any} */
    this.about = null;
  }

  createRenderRoot() {
    return this;
  }

  connectedCallback() {
    super.connectedCallback();
    void this.more();
  }

  async more() {
    try {
      const answer = await ask("/management/v1/access/what-can", whatCanBody(this.principal, this.project, this.next));
      this.rows = [...(this.rows ?? []), ...answer.rows];
      this.next = answer["next-page-token"] ?? undefined;
      this.about = answer;
    } catch (error) {
      this.failure = error;
    }
  }

  render() {
    if (this.failure !== null) {
      return problem(this.failure);
    }
    if (this.rows === null) {
      return html`<p class="loading" role="status">Loading …</p>`;
    }
    if (this.rows.length === 0) {
      return empty("It can do nothing in this project.", "Grant a right on the page of an object, or add it to a role.");
    }
    return html`<table>
        <caption>Rights, as of ${when(this.about["as-of"])}</caption>
        <thead><tr><th scope="col">On</th><th scope="col">May</th><th scope="col">Because</th><th scope="col">Until</th></tr></thead>
        <tbody>${this.rows.map((row) => this.lines(row))}</tbody>
      </table>
      ${this.about["token-groups-known"] ? nothing : html`<p class="quiet">Groups in the user's own token are not known here and may give more rights.</p>`}
      ${this.next === undefined ? nothing : html`<p><button type="button" @click=${() => void this.more()}>More</button></p>`}`;
  }

  /** @param {any} row */
  lines(row) {
    const inside = Object.entries(row.contents ?? {});
    return row.held.map(
      (/** @type {any} */ held, /** @type {number} */ at) => html`<tr>
        <th scope="row">${at === 0 ? resourceLink(row.resource, this.names) : nothing}</th>
        <td>
          ${held.actions.map(words).join(", ")}
          ${at > 0 || inside.length === 0
            ? nothing
            : html`<details><summary>In it</summary><ul>${inside.map(([type, actions]) => html`<li>${words(type)}: ${actions.map(words).join(", ")}</li>`)}</ul></details>`}
        </td>
        <td>${held.reason.length === 0 ? "—" : html`<ul class="plain">${held.reason.map((/** @type {any} */ each) => html`<li>${factText(each)}</li>`)}</ul>`}</td>
        <td>${held["end-unknown"] ? html`<span class="quiet">not known</span>` : when(held.end, "no end")}</td>
      </tr>`,
    );
  }
}

/** Return the question what a principal can do in a project. @param {Principal | null} principal @param {string} project @param {string} [token] */
export function whatCanBody(principal, project, token) {
  return { ...(principal === null ? {} : { principal, object: { project: { "project-id": project } } }), "page-size": 100, ...(token === undefined ? {} : { "page-token": token }) };
}

customElements.define("lg-what-can", WhatCan);
