// SPDX-License-Identifier: Apache-2.0
// Mapping tables: the values of users and roles that row filters read. One of them with its entries.

import { html, nothing } from "lit";

import { change, get, path } from "../core/api.js";
import { NotHere, projectOf } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address, go } from "../core/router.js";
import { typed } from "../core/role-names.js";
import { confirmDestruction, openDialog } from "../parts/dialog.js";
import { asCode, title } from "../parts/heading.js";
import { identityOf, principal, when } from "../parts/small.js";
import "../parts/long-list.js";
import "../parts/principal-picker.js";

const TABLES = "/management/v1/mapping-table";

export default class MappingTablesPage extends Page {
  /** @param {import("../core/router.js").Route} route */
  async load({ parts, query }) {
    const project = await projectOf(query.project);
    if (project === null) {
      throw new NotHere("You see no project.");
    }
    const more = { project: project["project-id"] };
    const at = parts[0] === undefined ? TABLES : TABLES + path`/${decodeURIComponent(parts[0])}`;
    const [list, member] = parts[0] === undefined ? [at, "mapping-tables"] : [`${at}/entries`, "entries"];
    const source = async (/** @type {string | null} */ token) => {
      const answer = await get(`${list}?pageSize=100${token === null ? "" : "&pageToken=" + encodeURIComponent(token)}`, more);
      return { rows: answer[member], next: answer["next-page-token"] ?? null };
    };
    return { at, more, source, table: parts[0] === undefined ? null : await get(at, more) };
  }

  /** @param {any} data */
  body({ at, more, source, table }) {
    return html`${table === null ? this.all(more, source) : this.one(at, more, source, table)}${asCode()}`;
  }

  /** @param {any} more @param {unknown} source */
  all(more, source) {
    const columns = [
      { label: "Name", draw: (/** @type {any} */ row) => html`<a href=${address("mapping-tables", [row.id], { project: this.route.query.project })}>${row.name}</a>` },
      { label: "Description", width: "minmax(12rem, 2fr)", draw: (/** @type {any} */ row) => row.description ?? "" },
      { label: "Made", draw: (/** @type {any} */ row) => when(row["created-at"]) },
    ];
    return html`${title("Mapping tables", "Row filters read the values that a mapping table has for the reader and its roles.")}
      <p><button type="button" class="primary" @click=${() => this.create(more)}>New mapping table …</button></p>
      <lg-long-list label="Mapping tables" .source=${source} .columns=${columns} .empty=${"No mapping table here that you may see."}></lg-long-list>`;
  }

  /** @param {string} at @param {any} more @param {unknown} source @param {any} table */
  one(at, more, source, table) {
    const columns = [
      { label: "Principal", draw: (/** @type {any} */ row) => principal(row.principal) },
      { label: "Values", width: "minmax(12rem, 2fr)", draw: (/** @type {any} */ row) => row.values.join(", ") },
      {
        label: "Change",
        width: "12rem",
        draw: (/** @type {any} */ row) => html`<button type="button" class="small" @click=${() => this.set(at, more, row)}>Change …</button>
          <button type="button" class="small" aria-label="Remove ${typed(row.principal)}" @click=${() => this.unset(at, more, row)}>Remove</button>`,
      },
    ];
    return html`${title(`Mapping table ${table.name}`, table.description ?? nothing)}
      <p class="buttons">
        <button type="button" class="primary" @click=${() => this.set(at, more, null)}>Set values …</button>
        <button type="button" @click=${() => this.destroy(at, more, table)}>Delete …</button>
        <a class="button" href=${address("mapping-tables", [], { project: this.route.query.project })}>All mapping tables</a>
      </p>
      <lg-long-list label="Entries" .source=${source} .columns=${columns} .empty=${"No principal has a value, so filters with this table show no rows."}></lg-long-list>`;
  }

  /** @param {any} more */
  async create(more) {
    await openDialog({
      title: "New mapping table",
      action: "Create",
      body: html`<p><label>Name <input name="name" required autocomplete="off" /></label></p>
        <p><label>Description <input name="description" autocomplete="off" /></label></p>`,
      submit: async ({ name, description }) => {
        const made = await change("POST", TABLES, { name, ...(description === "" ? {} : { description }) }, more);
        go(address("mapping-tables", [made.id], { project: this.route.query.project }));
      },
    });
  }

  /** @param {string} at @param {any} more @param {any} row the entry to change */
  async set(at, more, row) {
    const changed = await openDialog({
      title: "Set the values of a principal",
      action: "Set",
      body: html`<p><lg-principal-picker .value=${row === null ? "" : typed(row.principal)} .project=${more.project}></lg-principal-picker></p>
        <p><label>Values, separated by commas <input name="values" required .value=${row === null ? "" : row.values.join(", ")} autocomplete="off" /></label></p>`,
      submit: ({ principal: who, values }) =>
        change("POST", `${at}/entries`, { set: [{ principal: identityOf(who), values: values.split(",").map((each) => each.trim()).filter((each) => each !== "") }] }, more),
    });
    if (changed) {
      void this.reload();
    }
  }

  /** @param {string} at @param {any} more @param {any} row */
  async unset(at, more, row) {
    const changed = await openDialog({
      title: "Remove the values",
      action: "Remove",
      danger: true,
      body: html`<p>${principal(row.principal)} has no values then. Tests of row filters that read them are false.</p>`,
      submit: () => change("POST", `${at}/entries`, { remove: [row.principal] }, more),
    });
    if (changed) {
      void this.reload();
    }
  }

  /** @param {string} at @param {any} more @param {any} table */
  async destroy(at, more, table) {
    const consequence = "The table and its values are deleted, which cannot be undone. Filters that read it show no rows through it.";
    if (await confirmDestruction({ title: "Delete the mapping table", name: table.name, consequence, action: "Delete", submit: () => change("DELETE", at, undefined, more) })) {
      go(address("mapping-tables", [], { project: this.route.query.project }));
    }
  }
}
