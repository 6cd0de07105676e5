// SPDX-License-Identifier: Apache-2.0
// The principals that may take an action on an object, each with the reason, the end and the limits.

import { LitElement, html, nothing } from "lit";

import { ask, get } from "../core/api.js";
import { words } from "../core/format.js";
import { catalogPath, nameOf, pageOf, projects, questionOn } from "../core/objects.js";
import { address, current, setState } from "../core/router.js";
import { roleNames, typed } from "../core/role-names.js";
import { ACTIONS } from "./explain-form.js";
import { badge, principal, when } from "./small.js";
import "./long-list.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

/** Return the id of an object that an answer names. @param {any} resource */
function idOf(resource) {
  return resource[`${resource.type}-id`] ?? resource[`${resource.type.replaceAll("_", "-")}-id`] ?? "";
}

/** Return the names of an object and of those above it, by id. @param {Thing} on @param {any[]} resources */
async function namesAbove(on, resources) {
  const names = new Map([[on.id, `this ${on.type.replace("-", " ")}`], [on.warehouse ?? "", `warehouse ${on.warehouseName}`]]);
  for (const each of await projects()) {
    names.set(each["project-id"], `project ${each["project-name"]}`);
  }
  const levels = on.namespace ?? [];
  if (resources.some((each) => each.type === "namespace" && !names.has(idOf(each)))) {
    const above = levels.map((_, at) => /** @type {Thing} */ ({ ...on, type: "namespace", namespace: levels.slice(0, at + 1) }));
    const read = await Promise.allSettled(above.map((each) => get(catalogPath(each))));
    read.forEach((each, at) => each.status === "fulfilled" && names.set(each.value.properties.namespace_id, nameOf(above[at])));
  }
  return names;
}

/** Return the reason of a row in words. @param {any[]} facts @param {Map<string, string>} names @param {Map<string, string>} roles */
export function reasonText(facts, names, roles) {
  return facts
    .map((fact) => {
      const on = fact.resource ? (names.get(idOf(fact.resource)) ?? roles.get(idOf(fact.resource)) ?? `${fact.resource.type} ${idOf(fact.resource)}`) : "";
      switch (fact.fact) {
        case "grant":
          return `${words(fact.privilege ?? "")} on ${on}${fact["granted-by"] ? `, granted by ${fact["granted-by"]}` : ""}${fact.reason ? ` (“${fact.reason}”)` : ""}`;
        case "membership":
          return `member of role ${roles.get(fact.principal?.role ?? fact.resource?.["role-id"] ?? "") ?? fact.principal?.role ?? on}`;
        case "contents":
          return "a right on something inside";
        default:
          return "a grant that you may not read";
      }
    })
    .join(", through ");
}

/** @param {any} limits */
function limited(limits) {
  if (!limits) {
    return nothing;
  }
  const denied = limits.denied ?? [];
  return html`${denied.length > 0 ? badge("denied", "bad") : nothing} ${limits.restricted ? badge("restricted", "warn") : nothing}
    <span title=${denied.map((/** @type {any} */ each) => each.message).join("\n")}>${denied.map((/** @type {any} */ each) => each.code).join(", ")}</span>
    ${Object.entries(limits.obligations ?? {}).map(([name, value]) => html`<span class="quiet">${words(name)}: ${value}</span>`)}`;
}

/** The list of an object. With `inherited`, only the rights that come from an object above it. */
class WhoCan extends LitElement {
  static properties = { on: { attribute: false }, action: {}, expand: {}, inherited: { type: Boolean }, source: { state: true }, answer: { state: true } };

  constructor() {
    super();
    /** @type {Thing | null} */
    this.on = null;
    this.action = "";
    this.expand = "";
    this.inherited = false;
    /** @type {any} */
    this.answer = null;
    /** @type {import("./long-list.js").Source | null} */
    this.source = null;
  }

  createRenderRoot() {
    return this;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (this.action === "") {
      this.action = ACTIONS[this.on?.type ?? ""]?.[0] ?? "read";
    }
    if (["on", "action", "expand", "inherited"].some((each) => changed.has(each))) {
      this.answer = null;
      this.source = (token) => this.page(token);
    }
  }

  /** @param {string | null} token @returns {Promise<{rows: any[], next: string | null}>} */
  async page(token) {
    const on = /** @type {Thing} */ (this.on);
    const answer = await ask("/management/v1/access/who-can", {
      action: this.action,
      object: questionOn(on),
      "page-size": 100,
      ...(this.expand === "" ? {} : { expand: this.expand }),
      ...(token === null ? {} : { "page-token": token }),
    });
    this.answer = answer;
    const next = answer["next-page-token"] ?? null;
    const all = this.inherited ? answer.rows.filter((/** @type {any} */ row) => row.resource && idOf(row.resource) !== on.id) : answer.rows;
    if (all.length === 0 && next !== null) {
      return this.page(next);
    }
    const facts = all.flatMap((/** @type {any} */ row) => row.reason);
    const seen = [...all, ...facts].flatMap((each) => (each.principal ? [each.principal] : []));
    const roles = await roleNames([...seen, ...facts.map((/** @type {any} */ each) => ({ role: each.resource?.["role-id"] }))], on.project);
    const names = await namesAbove(on, facts.flatMap((/** @type {any} */ each) => (each.resource ? [each.resource] : [])));
    return { rows: all.map((/** @type {any} */ row) => ({ ...row, name: roles.get(row.principal.role ?? ""), why: reasonText(row.reason, names, roles) })), next };
  }

  /** @param {any} row */
  members(row) {
    const { kind, parts, query } = current();
    return row.expandable ? html` <a href=${address(kind, parts, { ...query, expand: row.principal.role })}>members</a>` : nothing;
  }

  columns() {
    const on = /** @type {Thing} */ (this.on);
    return [
      { label: "Principal", draw: (/** @type {any} */ row) => html`${principal(row.principal)} ${row.name ?? nothing}${this.members(row)}` },
      { label: "Reason", width: "minmax(14rem, 3fr)", draw: (/** @type {any} */ row) => html`<span title=${row.why}>${row.why}</span>` },
      { label: "Ends", draw: (/** @type {any} */ row) => (row["end-unknown"] ? html`<span class="quiet">not known</span>` : when(row.end, "never")) },
      { label: "Limits", draw: (/** @type {any} */ row) => limited(row.limits) },
      {
        label: "Explain",
        width: "6rem",
        draw: (/** @type {any} */ row) => html`<a href=${pageOf(on, { tab: "why", who: typed(row.principal), action: this.action })} aria-label="Why ${typed(row.principal)}">Why</a>`,
      },
    ];
  }

  notes() {
    const { "not-kept": unknown = [], "circumstances-known": circumstances } = this.answer ?? { "circumstances-known": true };
    const notes = [
      ...(circumstances ? [] : ["Limits that depend on the time, the place or the program of a request are not counted."]),
      ...unknown.map((/** @type {string} */ each) => `Not counted: ${words(each)}.`),
    ];
    return html`<p class="quiet">${notes.join(" ")}</p>`;
  }

  render() {
    const actions = ACTIONS[this.on?.type ?? ""] ?? [];
    const { kind, parts, query } = current();
    return html`<form class="question">
        <label>Action
          <select name="action" @change=${(/** @type {Event} */ event) => setState({ action: /** @type {HTMLSelectElement} */ (event.target).value, expand: null })}>
            ${actions.map((each) => html`<option value=${each} ?selected=${each === this.action}>${words(each)}</option>`)}
          </select></label>
      </form>
      ${this.expand === ""
        ? nothing
        : html`<p>Members of ${principal({ role: this.expand })}. <a href=${address(kind, parts, { ...query, expand: null })}>All principals</a></p>`}
      <lg-long-list
        label=${this.inherited ? "Inherited rights" : `Who can ${words(this.action)}`}
        .source=${this.source}
        .columns=${this.columns()}
        .empty=${this.inherited ? "No right for this action comes from an object above." : "No principal that you may see can do this."}
      ></lg-long-list>
      ${this.notes()}`;
  }
}

customElements.define("lg-who-can", WhoCan);
