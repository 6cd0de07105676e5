// SPDX-License-Identifier: Apache-2.0
// A tag: its definition, what it is attached to, and the rights on it.

import { html, nothing } from "lit";

import { change, get, path } from "../core/api.js";
import { actionsOn } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address, go, setState } from "../core/router.js";
import { accessTabs } from "../parts/access.js";
import { confirmDestruction, openDialog } from "../parts/dialog.js";
import { asCode, heading } from "../parts/heading.js";
import { menu } from "../parts/menu.js";
import { when } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";
import { SCOPES, linesOf, scopeBoxes, scopeOf } from "./tags.js";
import "../parts/long-list.js";

export default class TagPage extends Page {
  /** @param {import("../core/router.js").Route} route */
  async load({ parts, query }) {
    const at = "/management/v1/tag-definition" + path`/${decodeURIComponent(parts[0] ?? "")}`;
    const tag = await get(at);
    /** @type {import("../core/objects.js").Thing} */
    const on = { type: "tag", id: tag.id, name: tag.name, project: query.project };
    return { at, tag, on, actions: await actionsOn(on), sources: new Map() };
  }

  /** @param {any} data */
  body({ at, tag, on, actions, sources }) {
    const missing = (/** @type {string} */ action) => `needs the right to ${action} this tag: ask its owner`;
    return html`${heading(on, {
        menu: menu("Actions", [
          { label: "Edit …", allowed: actions.has("update"), missing: missing("change"), run: () => this.edit(at, tag) },
          { label: "Delete …", allowed: actions.has("delete"), missing: missing("delete"), run: () => this.destroy(at, tag) },
        ]),
      })}
      ${tabs({
        definition: { label: "Definition", draw: () => this.definition(tag) },
        attachments: { label: "Attachments", draw: () => this.attachments(at, sources) },
        ...accessTabs(on),
      })}
      ${asCode()}`;
  }

  /** @param {any} tag */
  definition(tag) {
    return html`<dl class="facts">
      <dt>Can be attached to</dt><dd>${tag.scope.join(", ")}</dd>
      <dt>Values</dt><dd>${tag["value-kind"] === "enumerated" ? (tag["allowed-values"] ?? []).join(", ") : tag["value-kind"]}</dd>
      ${tag.description ? html`<dt>Description</dt><dd>${tag.description}</dd>` : nothing}
      <dt>Made</dt><dd>${when(tag["created-at"])}</dd>
    </dl>`;
  }

  /** @param {string} at @param {Map<string, unknown>} sources */
  attachments(at, sources) {
    const target = this.route.query.target ?? "";
    const list = `${at}/attachments?pageSize=100${target === "" ? "" : "&targetType=" + encodeURIComponent(target)}`;
    if (!sources.has(list)) {
      sources.set(list, async (/** @type {string | null} */ token) => {
        const answer = await get(list + (token === null ? "" : "&pageToken=" + encodeURIComponent(token)));
        return { rows: answer.attachments, next: answer["next-page-token"] ?? null };
      });
    }
    const id = (/** @type {any} */ on) => on["table-id"] ?? on["view-id"] ?? on["generic-table-id"] ?? on["namespace-id"] ?? on["warehouse-id"];
    const columns = [
      { label: "On", width: "minmax(14rem, 2fr)", draw: (/** @type {any} */ row) => html`${row.target.type} <code>${id(row.target)}</code>${row.target["field-id"] ? html` column <code>${row.target["field-id"]}</code>` : nothing}` },
      { label: "Value", draw: (/** @type {any} */ row) => row.value ?? "" },
      { label: "By", draw: (/** @type {any} */ row) => html`<code>${row["attached-by"]}</code>` },
      { label: "When", draw: (/** @type {any} */ row) => when(row["created-at"]) },
      { label: "Source", width: "8rem", draw: (/** @type {any} */ row) => row.source ?? "" },
    ];
    return html`<div class="question"><label>On
        <select @change=${(/** @type {Event} */ event) => setState({ target: /** @type {HTMLSelectElement} */ (event.target).value })}>
          <option value="">everything</option>
          ${SCOPES.map((each) => html`<option value=${each} ?selected=${each === target}>${each}</option>`)}
        </select></label></div>
      <lg-long-list label="Attachments" .source=${sources.get(list)} .columns=${columns} .empty=${"The tag is attached to nothing that you may see."}></lg-long-list>`;
  }

  /** @param {string} at @param {any} tag */
  async edit(at, tag) {
    const changed = await openDialog({
      title: "Edit the tag",
      action: "Save",
      body: html`<p><label>Name <input name="name" required .value=${tag.name} autocomplete="off" /></label></p>
        <p><label>Description <input name="description" .value=${tag.description ?? ""} autocomplete="off" /></label></p>
        ${scopeBoxes(tag.scope)}
        ${tag["value-kind"] === "enumerated" ? html`<p><label>Further values, one a line <textarea name="values" rows="3"></textarea></label></p>` : nothing}`,
      submit: (values) =>
        change("POST", at, {
          name: values.name,
          scope: scopeOf(values),
          ...(values.description === "" ? {} : { description: values.description }),
          ...(values.values ? { "add-allowed-values": linesOf(values.values) } : {}),
        }),
    });
    if (changed) {
      void this.reload();
    }
  }

  /** @param {string} at @param {any} tag */
  async destroy(at, tag) {
    const consequence = "The tag is deleted with its definition, which cannot be undone. Policies that are bound to it no longer apply by it.";
    if (await confirmDestruction({ title: "Delete the tag", name: tag.name, consequence, action: "Delete", submit: () => change("DELETE", at) })) {
      go(address("tags", [], { project: this.route.query.project }));
    }
  }
}
