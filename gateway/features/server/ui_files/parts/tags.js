// SPDX-License-Identifier: Apache-2.0
// The tags of an object and of its columns, with their origin; attach, detach and suggestions.

import { LitElement, html, nothing } from "lit";

import { ApiError, change, get, pages, path } from "../core/api.js";
import { managementPath } from "../core/objects.js";
import { address } from "../core/router.js";
import { openDialog } from "./dialog.js";
import { problem } from "./problem.js";
import { currentFields } from "./schema.js";
import { badge, empty } from "./small.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

/** Return the path of the tags of an object or of one of its columns. @param {Thing} on @param {string} [column] */
function tagsAt(on, column) {
  return managementPath(on) + (column === undefined ? "/tags" : path`/column/${column}/tags`);
}

/** Ask for a tag and attach it. Returns True if it was attached. @param {Thing} on @param {string} [column] @param {string} [proposed] the tag's name */
export async function openAttach(on, column, proposed = "") {
  const { rows } = await pages("/management/v1/tag-definition?pageSize=100", "tag-definitions", { project: on.project, most: 1000 });
  const scope = column === undefined ? on.type : "column";
  const fitting = rows.filter((each) => each.scope.includes(scope));
  const values = [...new Set(fitting.flatMap((each) => each["allowed-values"] ?? []))];
  return openDialog({
    title: `Attach a tag to ${column ?? on.name}`,
    action: "Attach",
    body: fitting.length === 0
      ? empty(`No tag is defined for a ${scope}.`, html`<a href=${address("tags", [], { project: on.project })}>Define one</a>.`)
      : html`<p><label>Tag <select name="tag">${fitting.map((each) => html`<option value=${each.name} ?selected=${each.name === proposed}>${each.name}${each["value-kind"] === "marker" ? "" : " (with a value)"}</option>`)}</select></label></p>
          <p><label>Value, if the tag has one <input name="value" list="tag-values" autocomplete="off" /></label></p>
          <datalist id="tag-values">${values.map((each) => html`<option value=${each}></option>`)}</datalist>
          <p class="quiet">Data policies that are bound to the tag restrict readers at once.</p>`,
    submit: ({ tag, value }) => change("PUT", `${tagsAt(on, column)}/${encodeURIComponent(tag)}`, value ? { value } : {}),
  });
}

/** The tags of `on`, and of its columns if it is a table. `columns` are their names. */
class Tags extends LitElement {
  static properties = { on: { attribute: false }, columns: { attribute: false }, tags: { state: true }, ofColumns: { state: true }, suggestions: { state: true }, failure: { state: true } };

  constructor() {
    super();
    /** @type {Thing | null} */
    this.on = null;
    /** @type {string[]} */
    this.columns = [];
    /** @type {any[] | null} */
    this.tags = null;
    /** @type {any[]} */
    this.ofColumns = [];
    /** @type {any[] | null} */
    this.suggestions = null;
    /** @type {unknown} */
    this.failure = null;
  }

  createRenderRoot() {
    return this;
  }

  get object() {
    return /** @type {Thing} */ (this.on);
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("on")) {
      void this.attempt(() => this.read());
    }
  }

  async read() {
    const [tags, columns] = await Promise.all([get(`${tagsAt(this.object)}?effective=true`), this.object.type === "table" ? get(`${managementPath(this.object)}/column-tags`) : { columns: [] }]);
    this.tags = tags.tags;
    this.ofColumns = columns.columns;
  }

  /** @param {() => Promise<unknown>} run */
  async attempt(run) {
    try {
      await run();
      this.failure = null;
    } catch (error) {
      this.failure = error;
    }
  }

  /** @param {string} [column] @param {string} [proposed] */
  attach(column, proposed) {
    void this.attempt(async () => (await openAttach(this.object, column, proposed)) && (await this.read()));
  }

  /** @param {any} tag @param {string} [column] */
  detach(tag, column) {
    void this.attempt(async () => {
      const done = await openDialog({
        title: `Detach ${tag.name}`,
        action: "Detach",
        danger: true,
        body: html`<p>Data policies that are bound to the tag no longer apply to ${column ?? this.object.name} by it. You can attach it again.</p>`,
        submit: () => change("DELETE", `${tagsAt(this.object, column)}/${encodeURIComponent(tag.name)}`),
      });
      return done && this.read();
    });
  }

  suggest() {
    void this.attempt(async () => {
      try {
        this.suggestions = (await get(`${managementPath(this.object)}/tag-suggestions`)).suggestions;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 404) {
          throw error;
        }
        this.suggestions = [{ because: error.message }];
      }
    });
  }

  /** @param {any} tag @param {string} [column] */
  tag(tag, column) {
    const from = tag[`inherited-from`];
    return html`<li>
      <a href=${address("tag", [encodeURIComponent(tag["tag-definition-id"])], { project: this.object.project })}>${tag.name}</a>${tag.value ? html` = <code>${tag.value}</code>` : nothing}
      ${from ? badge(`from the ${from.type}`) : html`<button type="button" class="small" aria-label="Detach ${tag.name}${column === undefined ? "" : ` from ${column}`}" @click=${() => this.detach(tag, column)}>Detach</button>`}
      ${tag.source && tag.source !== "manual" ? badge(tag.source) : nothing}
    </li>`;
  }

  columnTable() {
    const byName = new Map(this.ofColumns.map((each) => [each.name, each.tags]));
    return html`<table>
      <caption>Tags of columns</caption>
      <thead><tr><th scope="col">Column</th><th scope="col">Tags</th><th scope="col">Change</th></tr></thead>
      <tbody>
        ${this.columns.map(
          (name) => html`<tr><th scope="row">${name}</th>
            <td><ul>${(byName.get(name) ?? []).map((/** @type {any} */ each) => this.tag(each, name))}</ul></td>
            <td><button type="button" class="small" aria-label="Attach a tag to ${name}" @click=${() => this.attach(name)}>Attach …</button></td></tr>`,
        )}
      </tbody>
    </table>`;
  }

  suggestionList() {
    if (this.suggestions === null) {
      return html`<p><button type="button" @click=${this.suggest}>Suggest tags for columns</button></p>`;
    }
    return this.suggestions.length === 0
      ? empty("No name of a column suggests a tag.")
      : html`<ul>${this.suggestions.map((each) => (each.column === undefined ? html`<li>${each.because}</li>` : html`<li>${each.tag} for ${each.column}: ${each.because} <button type="button" class="small" @click=${() => this.attach(each.column, each.tag)}>Attach …</button></li>`))}</ul>`;
  }

  render() {
    if (this.failure !== null) {
      return problem(this.failure);
    }
    if (this.tags === null) {
      return html`<p class="loading" role="status">Loading …</p>`;
    }
    return html`${this.tags.length === 0 ? empty("No tag is attached here or above.") : html`<ul>${this.tags.map((each) => this.tag(each))}</ul>`}
      <p><button type="button" class="primary" id="attach" @click=${() => this.attach()}>Attach a tag …</button></p>
      ${this.object.type === "table" ? html`${this.columnTable()}${this.suggestionList()}` : nothing}`;
  }
}

customElements.define("lg-tags", Tags);

/** Return the tab about the tags of an object, for `tabs`. @param {Thing} on @param {any} [metadata] the metadata of a table */
export function tagsTab(on, metadata) {
  const columns = metadata === undefined ? [] : currentFields(metadata).map((/** @type {any} */ each) => each.name);
  return { tags: { label: "Tags", draw: () => html`<lg-tags .on=${on} .columns=${columns}></lg-tags>` } };
}
