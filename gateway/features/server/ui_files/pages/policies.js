// SPDX-License-Identifier: Apache-2.0
// The relationship model and the guardrails as they are in force, read only, for policy authors.

import { html, nothing } from "lit";

import { get } from "../core/api.js";
import { words } from "../core/format.js";
import { Page } from "../core/page.js";
import { asCode, title } from "../parts/heading.js";
import { badge, copied, copyButton, empty } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";

/** Kinds of relations, in the order of the page. @type {Record<string, string>} */
const KINDS = { privilege: "Privileges", action: "Actions", other: "Other relations" };

export default class PoliciesPage extends Page {
  static properties = { ...Page.properties, text: { state: true } };

  constructor() {
    super();
    this.text = "";
  }

  async load() {
    const [model, guardrails] = await Promise.all([get("/management/v1/policies/model"), get("/management/v1/policies/guardrails")]);
    return { model, guardrails };
  }

  /** @param {any} data */
  body({ model, guardrails }) {
    return html`${title("Model and guardrails", "What decides here. Change them in your policy repository, and compare before with lakegate model diff and lakegate policy diff.")}
      ${tabs({
        model: { label: "Relationship model", draw: () => this.model(model) },
        guardrails: { label: "Guardrails", draw: () => this.modules(guardrails) },
        json: { label: "Model as JSON", draw: () => this.json(model.model) },
      })}
      ${asCode()}`;
  }

  /** @param {any} model */
  model({ id, version, types }) {
    const typed = (/** @type {InputEvent} */ event) => (this.text = /** @type {HTMLInputElement} */ (event.target).value.toLowerCase());
    return html`<p>${version ? badge(`version ${version}`) : nothing} ${copied(id, "the id of the model")}</p>
      <p><label>Filter <input type="search" .value=${this.text} @input=${typed} placeholder="select, can_read_data" /></label></p>
      ${types.map((/** @type {any} */ each) => this.type(each))}`;
  }

  /** @param {any} type */
  type({ type, relations }) {
    const shown = relations.filter((/** @type {any} */ each) => `${type} ${each.name}`.includes(this.text));
    if (shown.length === 0) {
      return nothing;
    }
    return html`<details ?open=${this.text !== ""}>
      <summary>${type} <span class="quiet">${shown.length} relations</span></summary>
      ${Object.entries(KINDS).map(([kind, label]) => this.relations(label, shown.filter((/** @type {any} */ each) => each.kind === kind)))}
    </details>`;
  }

  /** @param {string} label @param {any[]} relations */
  relations(label, relations) {
    return relations.length === 0
      ? nothing
      : html`<table>
          <caption>${label}</caption>
          <thead><tr><th scope="col">Name</th><th scope="col">Is given by</th><th scope="col">Meaning</th></tr></thead>
          <tbody>
            ${relations.map(
              (each) => html`<tr><th scope="row"><code>${each.name}</code></th><td><code>${each.definition}</code></td><td>${each.description ?? each.title ?? words(each.name)}</td></tr>`,
            )}
          </tbody>
        </table>`;
  }

  /** @param {any} guardrails */
  modules({ revision, modules }) {
    if (modules.length === 0) {
      return empty("No guardrail is loaded.", "lakegate init policies DIRECTORY creates a repository of your own.");
    }
    return html`<p>Revision <code>${revision}</code></p>
      ${modules.map(
        (/** @type {any} */ each) => html`<details>
          <summary><code>${each.path}</code> ${each.guardrail ? badge("guardrail", "warn") : badge("library")} <span class="quiet">package ${each.package}</span></summary>
          ${copyButton(each.text, each.path)}
          <pre tabindex="0">${each.text}</pre>
        </details>`,
      )}`;
  }

  /** @param {any} model */
  json(model) {
    const text = JSON.stringify(model, null, 2);
    return html`${copyButton(text, "the model")}<pre tabindex="0">${text}</pre>`;
  }
}
