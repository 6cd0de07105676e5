// SPDX-License-Identifier: Apache-2.0
// A view: its schema, its query in each dialect, its versions, and the ways to reach it.

import { html } from "lit";

import { get } from "../core/api.js";
import { applyFile } from "../core/apply-file.js";
import { actionsOn, catalogPath, tabularNamed } from "../core/objects.js";
import { Page } from "../core/page.js";
import { accessTabs } from "../parts/access.js";
import { connect } from "../parts/connect.js";
import { asCode, heading } from "../parts/heading.js";
import { schemaTable } from "../parts/schema.js";
import { badge, copyButton, when } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";
import { tagsTab } from "../parts/tags.js";
import { tabularMenu } from "../parts/tabular-menu.js";
import { taskList, tasksOf } from "../parts/tabular-tasks.js";
import "../parts/explain-form.js";

export default class ViewPage extends Page {
  /** @param {import("../core/router.js").Route} route */
  async load({ parts, query }) {
    const named = await tabularNamed("view", parts[0] ?? "", parts[1] ?? "", query.project);
    const loaded = await get(catalogPath(named));
    const on = { ...named, id: loaded.metadata["view-uuid"] };
    return { on, metadata: loaded.metadata, actions: await actionsOn(on), tasks: tasksOf(on) };
  }

  /** @param {any} data */
  body({ on, metadata, actions, tasks }) {
    const version = metadata.versions.find((/** @type {any} */ each) => each["version-id"] === metadata["current-version-id"]);
    const schema = { ...metadata, "current-schema-id": version["schema-id"] };
    return html`${heading(on, { menu: tabularMenu(on, actions, () => this.reload()) })}
      ${tabs({
        query: { label: "Query", draw: () => version.representations.map((/** @type {any} */ each) => this.query(each)) },
        schema: { label: "Schema", draw: () => schemaTable(schema) },
        versions: { label: "Versions", draw: () => this.versions(metadata) },
        properties: { label: "Properties", draw: () => this.properties(metadata) },
        tasks: { label: "Tasks", draw: () => taskList(tasks) },
        connect: { label: "Connect", draw: () => connect(on) },
        ...tagsTab(on),
        ...accessTabs(on),
        why: { label: "Why", draw: () => html`<lg-explain-form .on=${on} who=${this.route.query.who ?? ""} action=${this.route.query.action ?? ""}></lg-explain-form>` },
      })}
      ${asCode(() => applyFile(on))}`;
  }

  /** @param {{dialect: string, sql: string}} representation */
  query({ dialect, sql }) {
    return html`<h2>${badge(dialect)} ${copyButton(sql, `the query for ${dialect}`)}</h2>
      <pre tabindex="0">${sql}</pre>`;
  }

  /** @param {any} metadata */
  versions(metadata) {
    return html`<ol class="timeline">
      ${[...metadata.versions].reverse().map(
        (each) => html`<li>
          ${when(each["timestamp-ms"])} version ${each["version-id"]} ${each["version-id"] === metadata["current-version-id"] ? badge("current", "good") : ""}
          <span class="quiet">${Object.entries(each.summary ?? {}).map(([name, value]) => `${name} ${value}`).join(", ")}</span>
        </li>`,
      )}
    </ol>`;
  }

  /** @param {any} metadata */
  properties(metadata) {
    const facts = { location: metadata.location, "format-version": metadata["format-version"], ...metadata.properties };
    return html`<dl class="facts">${Object.entries(facts).map(([name, value]) => html`<dt>${name}</dt><dd><code>${value}</code></dd>`)}</dl>`;
  }
}
