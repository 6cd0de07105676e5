// SPDX-License-Identifier: Apache-2.0
// A warehouse: its namespaces, its settings, and the rights on it.

import { html, nothing } from "lit";

import { applyFile } from "../core/apply-file.js";
import { actionsOn, namespacesIn, pageOf, warehouseNamed } from "../core/objects.js";
import { Page } from "../core/page.js";
import { accessTabs } from "../parts/access.js";
import { asCode, heading } from "../parts/heading.js";
import { badge } from "../parts/small.js";
import { stewardTabs } from "../parts/stewardship.js";
import { tabs } from "../parts/tabs.js";
import { warehouseSources, warehouseTabs } from "../parts/warehouse-tabs.js";
import { tagsTab } from "../parts/tags.js";
import "../parts/explain-form.js";
import "../parts/long-list.js";

export default class WarehousePage extends Page {
  static properties = { ...Page.properties, notice: { state: true } };

  constructor() {
    super();
    this.notice = "";
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ parts, query }) {
    const on = await warehouseNamed(parts[0] ?? "", query.project);
    const [actions, namespaces] = await Promise.all([actionsOn(on), on.row.status === "active" ? namespacesIn(on) : []]);
    return { on, actions, namespaces, sources: warehouseSources(on) };
  }

  /** @param {any} data */
  body({ on, actions, namespaces, sources }) {
    const { status } = on.row;
    return html`${heading(on, { badges: badge(status, status === "active" ? "good" : "warn") })}
      <p role="status">${this.notice}</p>
      ${tabs({
        content: { label: "Namespaces", draw: () => this.content(namespaces) },
        ...tagsTab(on),
        ...accessTabs(on),
        ...stewardTabs(on),
        ...warehouseTabs(on, actions, sources, (notice) => this.changed(notice)),
        why: { label: "Why", draw: () => html`<lg-explain-form .on=${on} who=${this.route.query.who ?? ""} action=${this.route.query.action ?? ""}></lg-explain-form>` },
      })}
      ${asCode(() => applyFile(on))}`;
  }

  /** Read the warehouse again after a change. @param {string} notice */
  changed(notice) {
    this.notice = notice;
    void this.reload();
  }

  /** @param {any[]} namespaces */
  content(namespaces) {
    return html`<lg-long-list
      label="Namespaces"
      .rows=${namespaces}
      .columns=${[{ label: "Namespace", draw: (/** @type {any} */ each) => html`<a href=${pageOf(each)}>${each.name}</a>` }]}
      .empty=${"No namespace here that you may see."}
    ></lg-long-list>`;
  }
}
