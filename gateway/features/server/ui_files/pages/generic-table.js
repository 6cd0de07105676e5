// SPDX-License-Identifier: Apache-2.0
// A generic table: its format and place, its properties, and the rights on it.

import { html, nothing } from "lit";

import { get } from "../core/api.js";
import { applyFile } from "../core/apply-file.js";
import { actionsOn, catalogPath, tabularNamed } from "../core/objects.js";
import { Page } from "../core/page.js";
import { accessTabs } from "../parts/access.js";
import { asCode, heading } from "../parts/heading.js";
import { badge } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";
import { tagsTab } from "../parts/tags.js";
import { tabularMenu } from "../parts/tabular-menu.js";
import { taskList, tasksOf } from "../parts/tabular-tasks.js";
import "../parts/explain-form.js";

/** Return the id of a generic table, from the list of its namespace: the answer that loads it has none.
 * @param {import("../core/objects.js").Thing} on */
async function idOf(on) {
  const list = catalogPath(on).replace(/\/[^/]+$/, "");
  for (let token = ""; ; ) {
    const answer = await get(`${list}?pageSize=1000${token === "" ? "" : "&pageToken=" + encodeURIComponent(token)}`);
    const found = answer.identifiers.find((/** @type {any} */ each) => each.name === on.name);
    if (found !== undefined || !answer["next-page-token"]) {
      return found?.id ?? "";
    }
    token = answer["next-page-token"];
  }
}

export default class GenericTablePage extends Page {
  /** @param {import("../core/router.js").Route} route */
  async load({ parts, query }) {
    const named = await tabularNamed("generic-table", parts[0] ?? "", parts[1] ?? "", query.project);
    const { table } = await get(catalogPath(named), { headers: { "X-Iceberg-Access-Delegation": "client-managed" } });
    const on = { ...named, id: await idOf(named) };
    return { on, table, actions: await actionsOn(on), tasks: tasksOf(on) };
  }

  /** @param {any} data */
  body({ on, table, actions, tasks }) {
    const facts = { location: table["base-location"], comment: table.doc, ...table.properties };
    return html`${heading(on, { badges: badge(table.format), menu: tabularMenu(on, actions, () => this.reload()) })}
      ${tabs({
        properties: {
          label: "Properties",
          draw: () => html`<dl class="facts">${Object.entries(facts).map(([name, value]) => html`<dt>${name}</dt><dd><code>${value ?? nothing}</code></dd>`)}</dl>`,
        },
        tasks: { label: "Tasks", draw: () => taskList(tasks) },
        ...tagsTab(on),
        ...accessTabs(on),
        why: { label: "Why", draw: () => html`<lg-explain-form .on=${on}></lg-explain-form>` },
      })}
      ${asCode(() => applyFile(on))}`;
  }
}
