// SPDX-License-Identifier: Apache-2.0
// A data policy: its effect in words, versions, bindings, the tables and people that it affects, alerts, and rights on it.

import { html, nothing } from "lit";

import { ask, change, get, path } from "../core/api.js";
import { actionsOn, pageOf } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address, go } from "../core/router.js";
import { accessTabs } from "../parts/access.js";
import { affectedList, bindDialog } from "../parts/bindings.js";
import { confirmDestruction, openDialog } from "../parts/dialog.js";
import { asCode, heading } from "../parts/heading.js";
import { menu } from "../parts/menu.js";
import { policyBody, policyFields } from "../parts/policy-form.js";
import { definitionText, lineChanges } from "../parts/policy-words.js";
import { badge, empty, when } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";
import "../parts/later.js";
import "../parts/long-list.js";

const POLICIES = "/management/v1/data-policy";

/** Draw the difference of two documents. @param {any} before @param {any} after */
function difference(before, after) {
  const text = (/** @type {any} */ document) => (document === undefined ? "" : JSON.stringify(document, null, 2));
  return html`<pre class="changes" tabindex="0">${lineChanges(text(before), text(after)).map(
    ({ kind, text }) => html`<span class=${kind}>${kind === "same" ? "  " : kind === "old" ? "- " : "+ "}${text}\n</span>`,
  )}</pre>`;
}

export default class DataPolicyPage extends Page {
  static properties = { ...Page.properties, notice: { state: true } };

  constructor() {
    super();
    this.notice = "";
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ parts }) {
    const at = POLICIES + path`/${decodeURIComponent(parts[0] ?? "")}`;
    const policy = await get(at);
    /** @type {import("../core/objects.js").Thing} */
    const on = { type: "data-policy", id: policy.id, name: policy.name, project: policy["project-id"] };
    const list = (/** @type {string} */ name, /** @type {string} */ member) => async (/** @type {string | null} */ token) => {
      const answer = await get(`${at}/${name}?pageSize=100${token === null ? "" : "&pageToken=" + encodeURIComponent(token)}`);
      return { rows: answer[member], next: answer["next-page-token"] ?? null };
    };
    const sources = { bindings: list("bindings", "bindings"), affected: list("affected", "tables") };
    return { at, policy, on, actions: await actionsOn(on), sources, versions: null };
  }

  /** @param {any} data */
  body({ at, policy, on, actions, sources }) {
    const missing = (/** @type {string} */ action) => `needs the right to ${action} this policy: ask its owner`;
    return html`${heading(on, {
        badges: badge(policy.definition.kind),
        menu: menu("Actions", [
          { label: "Edit …", allowed: actions.has("update"), missing: missing("change"), run: () => this.edit(at, policy) },
          { label: "Bind …", allowed: actions.has("bind"), missing: missing("bind"), run: () => this.bind(at) },
          { label: "Delete …", allowed: actions.has("delete"), missing: missing("delete"), run: () => this.destroy(at, policy) },
        ]),
      })}
      <p role="status">${this.notice}</p>
      ${tabs({
        definition: { label: "Definition", draw: () => this.definition(policy) },
        versions: { label: "Versions", draw: () => html`<lg-later .load=${this.once("versions", () => get(`${at}/version?pageSize=100`))} .draw=${(/** @type {any} */ answer) => this.versions(at, policy, answer, actions)}></lg-later>` },
        bindings: { label: "Bindings", draw: () => this.bindings(at, sources.bindings, actions) },
        affected: { label: "Affected", draw: () => affectedList(sources.affected, on.project) },
        alerts: { label: "Alerts", draw: () => html`<lg-later .load=${this.once("alerts", () => get(`${at}/alerts`))} .draw=${(/** @type {any} */ answer) => this.alerts(answer)}></lg-later>` },
        ...accessTabs(on),
      })}
      ${asCode()}`;
  }

  /** Return the same function for a tab until the page is loaded again. @param {string} name @param {() => Promise<any>} load */
  once(name, load) {
    return (this.data[`load-${name}`] ??= load);
  }

  /** @param {any} policy */
  definition(policy) {
    return html`<p class="verdict">${definitionText(policy.definition)}</p>
      <dl class="facts">
        <dt>Applies to</dt><dd>${policy["applies-to"] === "subjects" ? "holders of the privilege “subject” only" : "everyone without an exemption"}</dd>
        <dt>Appends</dt><dd>${policy["allow-append"] ? "restricted principals may append rows" : "restricted principals may not append rows"}</dd>
        <dt>Version</dt><dd>${policy.version}, ${when(policy["updated-at"] ?? policy["created-at"])}</dd>
        ${policy.description ? html`<dt>Description</dt><dd>${policy.description}</dd>` : nothing}
      </dl>
      <details><summary>As JSON</summary><pre tabindex="0">${JSON.stringify(policy.definition, null, 2)}</pre></details>`;
  }

  /** @param {string} at @param {any} policy @param {any} answer @param {Set<string>} actions */
  versions(at, policy, answer, actions) {
    const all = [...answer.versions].sort((one, other) => other.version - one.version);
    return html`<ol class="timeline">
      ${all.map(
        (each, rank) => html`<li>
          <b>Version ${each.version}</b> by <code>${each["changed-by"]}</code>, ${when(each["changed-at"])}${each.reason ? html`: “${each.reason}”` : nothing}
          ${rank > 0 && actions.has("update") ? html`<button type="button" class="small" @click=${() => this.edit(at, { ...policy, ...each.document }, `Return to version ${each.version}`)}>Return to it …</button>` : nothing}
          <details><summary>${rank === all.length - 1 ? "Its document" : `Differences to version ${all[rank + 1].version}`}</summary>${difference(all[rank + 1]?.document, each.document)}</details>
        </li>`,
      )}
    </ol>`;
  }

  /** @param {string} at @param {unknown} source @param {Set<string>} actions */
  bindings(at, source, actions) {
    const columns = [
      { label: "Bound to", width: "minmax(12rem, 2fr)", draw: (/** @type {any} */ row) => html`${row.type} ${row.name ? html`<code>${[...(row.namespace ?? []), row.name].join(".")}</code>` : html`<code>${row.id}</code>`}` },
      { label: "By", draw: (/** @type {any} */ row) => html`<code>${row["bound-by"]}</code>` },
      { label: "When", draw: (/** @type {any} */ row) => when(row["bound-at"]) },
      { label: "Change", width: "7rem", draw: (/** @type {any} */ row) => html`<button type="button" class="small" ?disabled=${!actions.has("bind")} @click=${() => this.unbind(at, row)}>Unbind</button>` },
    ];
    return html`<p><button type="button" class="primary" ?disabled=${!actions.has("bind")} @click=${() => this.bind(at)}>Bind …</button></p>
      <lg-long-list label="Bindings" .source=${source} .columns=${columns} .empty=${"This policy is bound to nothing, so it restricts no user."}></lg-long-list>`;
  }

  /** @param {any} answer */
  alerts(answer) {
    return answer.alerts.length === 0
      ? empty("The policy applies everywhere as written.")
      : html`<ul>${answer.alerts.map((/** @type {any} */ each) => html`<li>${badge("stricter", "warn")} table <code>${each["table-id"]}</code>: ${each.problem}, since ${when(each["first-seen-at"])}</li>`)}</ul>`;
  }

  /** @param {string} notice */
  done(notice) {
    this.notice = notice;
    void this.reload();
  }

  /** @param {string} at @param {any} policy @param {string} [reason] */
  async edit(at, policy, reason = "") {
    const changed = await openDialog({
      title: "Edit the policy",
      action: "Save a new version",
      body: html`${policyFields(policy)}
        <p><label>Reason <input name="reason" .value=${reason} maxlength="900" autocomplete="off" /></label></p>
        <p class="quiet">The new version applies to all bound objects at once.</p>`,
      submit: (values) => change("PUT", at, { ...policyBody(values), "if-version": policy.version, ...(values.reason === "" ? {} : { reason: values.reason }) }),
    });
    if (changed) {
      this.done("A new version applies.");
    }
  }

  /** @param {string} at */
  async bind(at) {
    if (await bindDialog(at, { project: this.data.on.project })) {
      this.done("The policy was bound.");
    }
  }

  /** @param {string} at @param {any} row */
  async unbind(at, row) {
    const target = row.name
      ? { "remove-names": [{ "warehouse-id": row["warehouse-id"], namespace: row.namespace, name: row.name }] }
      : { remove: [{ type: row.type, id: row.id, ...(row["warehouse-id"] ? { "warehouse-id": row["warehouse-id"] } : {}) }] };
    const tried = await ask(`${at}/bindings/dry-run`, target).catch(() => null);
    const unbound = await openDialog({
      title: "Unbind",
      action: "Unbind",
      danger: true,
      body: html`<p>The policy no longer restricts readers through this ${row.type}.${tried === null ? "" : ` It then still affects ${tried.tables.length}${tried["next-page-token"] ? " or more" : ""} tables.`}</p>`,
      submit: () => change("POST", `${at}/bindings`, target),
    });
    if (unbound) {
      this.done("The policy was unbound.");
    }
  }

  /** @param {string} at @param {any} policy */
  async destroy(at, policy) {
    const deleted = await confirmDestruction({
      title: "Delete the policy",
      name: policy.name,
      consequence: "The policy and its versions are deleted, which cannot be undone. A bound policy is refused: unbind it first.",
      action: "Delete",
      submit: () => change("DELETE", at),
    });
    if (deleted) {
      go(address("data-policies", [], { project: this.route.query.project }));
    }
  }
}
