// SPDX-License-Identifier: Apache-2.0
// The data policies of a table: mask a column, and see what a person sees beside what I see.

import { LitElement, html, nothing } from "lit";

import { ApiError, ask, change, get, pages } from "../core/api.js";
import { words } from "../core/format.js";
import { managementPath, pageOf } from "../core/objects.js";
import { current, go, setState } from "../core/router.js";
import { affectedTables } from "./bindings.js";
import { openDialog } from "./dialog.js";
import { maskSelect } from "./policy-form.js";
import { problem } from "./problem.js";
import { currentFields, maskText } from "./schema.js";
import { badge, empty, identityOf } from "./small.js";
import "./principal-picker.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

/** Return the query that selects a person or a role. @param {string} who */
function asPrincipal(who) {
  const { user, role } = /** @type {any} */ (identityOf(who));
  return user ? `?principalUser=${encodeURIComponent(user)}` : `?principalRole=${encodeURIComponent(role)}`;
}

/**
 * Mask a column: choose or create a policy, and bind it. Then show the preview as the named person.
 * @param {Thing} on @param {string} column
 */
export async function openMask(on, column) {
  const policies = await pages("/management/v1/data-policy?pageSize=100", "data-policies", { project: on.project, most: 500 }).catch(() => ({ rows: [] }));
  const masks = policies.rows.filter((each) => each.definition.kind === "mask" && each.definition.columns.some((/** @type {any} */ one) => one.name === column));
  const target = { add: [{ type: "table", id: on.id, "warehouse-id": on.warehouse }] };
  let who = "";
  let bindings = "";
  /** @type {any} */
  let tried = null;
  const chosen = await openDialog({
    title: `Mask ${column}`,
    action: "See who is affected",
    body: html`${masks.length === 0
        ? nothing
        : html`<p><label>Policy
            <select name="policy"><option value="">a new one</option>${masks.map((each) => html`<option value=${each.id}>${each.name}</option>`)}</select></label></p>`}
      <p><label>Name of a new policy <input name="name" required .value=${`mask-${on.name}-${column}`} autocomplete="off" /></label></p>
      <p>${maskSelect("mask-alphanum")}</p>
      <p><lg-principal-picker name="who" label="Then preview as" optional .project=${on.project}></lg-principal-picker></p>
      <label class="choice"><input type="checkbox" name="exempt" /> <span>Exempt me from a new policy. It restricts everyone else, and without this you too: then the table opens only in a trusted engine.</span></label>`,
    submit: async (values) => {
      who = values.who;
      const definition = { kind: "mask", action: values.action, columns: [{ name: column }] };
      const id = values.policy || (await change("POST", "/management/v1/data-policy", { name: values.name, definition, "project-id": on.project })).id;
      const at = `/management/v1/data-policy/${encodeURIComponent(id)}`;
      bindings = `${at}/bindings`;
      if (values.exempt !== undefined && !values.policy) {
        const me = await get("/management/v1/whoami");
        await change("POST", `${at}/grants`, { writes: [{ privilege: "exempt", principal: { user: me.id }, reason: "made the policy" }] });
      }
      tried = await ask(`${bindings}/dry-run`, target);
    },
  });
  if (!chosen) {
    return;
  }
  const masked = await openDialog({
    title: "Who would be affected",
    action: "Mask",
    body: html`${affectedTables(tried)}<p class="quiet">Without “Mask”, the policy stays and restricts no user.</p>`,
    submit: () => change("POST", bindings, target),
  });
  if (masked) {
    go(pageOf(on, { tab: "policies", as: who || undefined }));
  }
}

/** Return the effect on each column, by its id. @param {any} preview @returns {Map<number, string>} */
function masksOf(preview) {
  const projections = preview["read-restrictions"]?.["required-column-projections"] ?? [];
  return new Map(projections.map((/** @type {any} */ each) => [each["field-id"], maskText(each)]));
}

/** The policies of a table, and the preview. `as` is a person or a role. */
class TablePolicies extends LitElement {
  static properties = { on: { attribute: false }, fields: { attribute: false }, as: {}, policies: { state: true }, mine: { state: true }, theirs: { state: true }, failure: { state: true } };

  constructor() {
    super();
    /** @type {Thing | null} */
    this.on = null;
    /** @type {any[]} */
    this.fields = [];
    this.as = "";
    /** @type {any} */
    this.policies = null;
    /** @type {any} */
    this.mine = null;
    /** @type {any} */
    this.theirs = null;
    /** @type {unknown} */
    this.failure = null;
  }

  createRenderRoot() {
    return this;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("on") || changed.has("as")) {
      void this.read();
    }
  }

  async read() {
    const at = `${managementPath(/** @type {Thing} */ (this.on))}/data-policies`;
    const as = this.as;
    this.failure = null;
    try {
      const who = as === "" ? "" : asPrincipal(as);
      const [mine, theirs, policies] = await Promise.all([
        get(`${at}/preview`),
        as === "" ? null : get(`${at}/preview${who}`),
        // Only principals that may read the assignments see the policies themselves.
        get(`${at}${who}`).catch((error) => (error instanceof ApiError && error.status === 403 ? error : Promise.reject(error))),
      ]);
      if (as === this.as) {
        Object.assign(this, { mine, theirs, policies });
      }
    } catch (error) {
      this.failure = error;
    }
  }

  /** @param {SubmitEvent} event */
  choose(event) {
    event.preventDefault();
    setState({ as: String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("as") ?? "") });
  }

  list() {
    if (this.policies instanceof ApiError) {
      return problem(this.policies);
    }
    const all = this.policies["data-policies"];
    return all.length === 0
      ? empty("No data policy applies to this table.", "Mask a column below, or bind a policy from its page.")
      : html`<ul>${all.map(
          (/** @type {any} */ each) => html`<li>
            ${each.name ? html`<a href=${pageOf({ type: "data-policy", id: each.id, name: each.name, project: this.on?.project })}>${each.name}</a>` : html`a policy that you may not read`}
            (${each.kind.replace("-", " ")}) by ${each["bound-to"].map((/** @type {any} */ place) => place.type).join(", ")}
            ${each.restricts ? badge(this.as === "" ? "restricts you" : "restricts", "warn") : nothing}${each.exempt ? badge("exempt", "good") : nothing}
          </li>`,
        )}</ul>`;
  }

  /** Draw what one reader sees of a column. @param {any} preview @param {Map<number, string>} masks @param {any} field */
  sight(preview, masks, field) {
    if (!preview.allowed) {
      return badge("no access", "bad");
    }
    const action = masks.get(field.id);
    return action === undefined ? badge("as it is", "good") : badge(words(action), "warn");
  }

  /** Draw the row filter of a reader. @param {string} who @param {any} preview */
  filter(who, preview) {
    const filter = preview["read-restrictions"]?.["required-row-filter"];
    return filter === undefined ? nothing : html`<p>${who} only rows that match: <code>${JSON.stringify(filter)}</code></p>`;
  }

  preview() {
    const mine = masksOf(this.mine);
    // A restricted reader cannot load the schema. The masks name the columns by their ids.
    const fields = this.fields.length > 0 ? this.fields : [...mine.keys()].map((id) => ({ id, name: `column ${id}` }));
    const theirs = this.theirs === null ? null : masksOf(this.theirs);
    return html`<table>
        <caption>What a reader sees</caption>
        <thead><tr><th scope="col">Column</th><th scope="col">I see</th>${theirs === null ? nothing : html`<th scope="col">${this.as} sees</th>`}<th scope="col">Change</th></tr></thead>
        <tbody>
          ${fields.map(
            (field) => html`<tr>
              <th scope="row">${field.name}</th><td>${this.sight(this.mine, mine, field)}</td>
              ${theirs === null ? nothing : html`<td>${this.sight(this.theirs, theirs, field)}</td>`}
              <td>${this.fields.length > 0 ? maskButton(/** @type {Thing} */ (this.on), field.name) : nothing}</td>
            </tr>`,
          )}
        </tbody>
      </table>
      ${this.filter("I see", this.mine)}${this.theirs === null ? nothing : this.filter(`${this.as} sees`, this.theirs)}`;
  }

  render() {
    if (this.failure !== null) {
      return problem(this.failure);
    }
    if (this.mine === null) {
      return html`<p class="loading" role="status">Loading …</p>`;
    }
    return html`${this.list()}
      <form class="question" @submit=${this.choose}>
        <lg-principal-picker name="as" label="Preview as" optional .value=${this.as} .project=${this.on?.project}></lg-principal-picker>
        <button type="submit" class="primary">Preview</button>
      </form>
      ${this.preview()}`;
  }
}

customElements.define("lg-table-policies", TablePolicies);

/** Draw the button that masks a column. @param {Thing} on @param {string} column */
export function maskButton(on, column) {
  return html`<button type="button" class="small" aria-label="Mask ${column}" @click=${() => openMask(on, column)}>Mask …</button>`;
}

/** Return the tab about the data policies of a table, for `tabs`. @param {Thing} on @param {any} [metadata] */
export function policiesTab(on, metadata) {
  const draw = () => html`<lg-table-policies .on=${on} .fields=${currentFields(metadata)} as=${current().query.as ?? ""}></lg-table-policies>`;
  return { policies: { label: "Policies", draw } };
}
