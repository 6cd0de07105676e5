// SPDX-License-Identifier: Apache-2.0
// A namespace: its tables, views, generic tables and namespaces, its properties, and the rights on it.

import { html } from "lit";

import { get } from "../core/api.js";
import { applyFile } from "../core/apply-file.js";
import { catalogPath, contained, namespaceNamed, namespacesIn, pageOf } from "../core/objects.js";
import { Page } from "../core/page.js";
import { accessTabs } from "../parts/access.js";
import { asCode, heading } from "../parts/heading.js";
import { tabs } from "../parts/tabs.js";
import { tagsTab } from "../parts/tags.js";
import "../parts/explain-form.js";
import "../parts/long-list.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

/** Return a source of the rows of one list of a namespace. @param {Thing} on @param {"table" | "view" | "generic-table"} type */
function listOf(on, type) {
  const list = type === "generic-table" ? catalogPath(on).replace("/catalog/", "/lakekeeper/") + "/generic-tables" : `${catalogPath(on)}/${type}s`;
  return async (/** @type {string | null} */ token) => {
    const answer = await get(`${list}?pageSize=500&returnUuids=true${token === null ? "" : "&pageToken=" + encodeURIComponent(token)}`);
    const ids = answer["table-uuids"] ?? [];
    const rows = answer.identifiers.map((/** @type {any} */ each, /** @type {number} */ at) => ({
      ...contained(on),
      type,
      id: ids[at] ?? "",
      name: each.name,
      namespace: on.namespace,
    }));
    return { rows, next: answer["next-page-token"] || null };
  };
}

const NAME = [{ label: "Name", draw: (/** @type {Thing} */ each) => html`<a href=${pageOf(each)}>${each.name}</a>` }];

export default class NamespacePage extends Page {
  /** @param {import("../core/router.js").Route} route */
  async load({ parts, query }) {
    const on = await namespaceNamed(parts[0] ?? "", parts[1] ?? "", query.project);
    const sources = { table: listOf(on, "table"), view: listOf(on, "view"), "generic-table": listOf(on, "generic-table"), namespaces: async () => ({ rows: await namespacesIn(on), next: null }) };
    return { on, sources };
  }

  /** @param {any} data */
  body({ on, sources }) {
    return html`${heading(on)}
      ${tabs({
        tables: { label: "Tables", draw: () => this.list("Tables", sources.table, "No table here that you may see.") },
        views: { label: "Views", draw: () => this.list("Views", sources.view, "No view here that you may see.") },
        generic: { label: "Generic tables", draw: () => this.list("Generic tables", sources["generic-table"], "No generic table here that you may see.") },
        namespaces: { label: "Namespaces", draw: () => this.list("Namespaces", sources.namespaces, "No namespace here that you may see.") },
        properties: { label: "Properties", draw: () => this.properties(on.properties) },
        ...tagsTab(on),
        ...accessTabs(on),
        why: { label: "Why", draw: () => html`<lg-explain-form .on=${on} who=${this.route.query.who ?? ""} action=${this.route.query.action ?? ""}></lg-explain-form>` },
      })}
      ${asCode(() => applyFile(on))}`;
  }

  /** @param {string} label @param {unknown} source @param {string} empty */
  list(label, source, empty) {
    return html`<lg-long-list label=${label} .source=${source} .columns=${NAME} .empty=${empty}></lg-long-list>`;
  }

  /** @param {Record<string, string>} properties */
  properties(properties) {
    return html`<dl class="facts">${Object.entries(properties).map(([name, value]) => html`<dt>${name}</dt><dd><code>${value}</code></dd>`)}</dl>`;
  }
}
