// SPDX-License-Identifier: Apache-2.0
// The tree of the catalog: projects, warehouses, namespaces. Its parts are read when they are opened.

import { LitElement, html, nothing } from "lit";

import { namespacesIn, pageOf, projects, warehouses } from "../core/objects.js";
import { address } from "../core/router.js";
import { problem } from "./problem.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

class Tree extends LitElement {
  static properties = { open: { state: true }, all: { state: true }, failure: { state: true }, here: { state: true } };

  constructor() {
    super();
    /** The children of each opened object, by its address; null while they are read. @type {Map<string, Thing[] | null>} */
    this.open = new Map();
    /** @type {{project: any, warehouses: Thing[]}[] | null} */
    this.all = null;
    /** @type {unknown} */
    this.failure = null;
    this.here = window.location.hash;
  }

  createRenderRoot() {
    return this;
  }

  connectedCallback() {
    super.connectedCallback();
    window.addEventListener("hashchange", () => (this.here = window.location.hash));
    // A page that changes the hierarchy says so.
    window.addEventListener("hierarchy-changed", () => void this.read());
    void this.read();
  }

  async read() {
    try {
      const seen = await projects();
      this.all = await Promise.all(
        seen.map(async (project) => ({
          project,
          warehouses: (await warehouses(project["project-id"])).map((row) => this.warehouse(row)),
        })),
      );
      for (const [key, children] of this.open) {
        if (children !== null) {
          this.open.delete(key);
        }
      }
      this.failure = null;
      this.requestUpdate();
    } catch (error) {
      this.failure = error;
    }
  }

  /** @param {any} row @returns {Thing} */
  warehouse(row) {
    const id = row["warehouse-id"];
    return { type: "warehouse", id, name: row.name, project: row["project-id"], warehouse: id, warehouseName: row.name };
  }

  /** @param {Thing} on */
  async toggle(on) {
    const key = pageOf(on);
    if (this.open.has(key)) {
      this.open.delete(key);
      this.requestUpdate();
      return;
    }
    this.open.set(key, null);
    this.requestUpdate();
    try {
      this.open.set(key, await namespacesIn(on));
    } catch {
      // The object's own page shows the reason.
      this.open.set(key, []);
    }
    this.requestUpdate();
  }

  render() {
    if (this.failure !== null) {
      return problem(this.failure);
    }
    if (this.all === null) {
      return html`<p class="loading">Loading …</p>`;
    }
    return html`<nav aria-label="Catalog" class="tree">
      <h2>Catalog</h2>
      ${this.all.map(
        ({ project, warehouses }) => html`<p class="project">
            <a href=${address("project", [project["project-id"]])}>${project["project-name"]}</a>
          </p>
          ${warehouses.length === 0 ? html`<p class="quiet">no visible warehouse</p>` : html`<ul>${warehouses.map((each) => this.item(each))}</ul>`}`,
      )}
    </nav>`;
  }

  /** @param {Thing} on @returns {unknown} */
  item(on) {
    const to = pageOf(on);
    const children = this.open.get(to);
    const isOpen = this.open.has(to);
    const here = this.here.split("?")[0] === to.split("?")[0];
    return html`<li>
      <button type="button" class="twist" aria-expanded=${isOpen ? "true" : "false"} aria-label="Namespaces in ${on.name}" @click=${() => this.toggle(on)}>
        ${isOpen ? "▾" : "▸"}
      </button>
      <a href=${to} aria-current=${here ? "page" : "false"}>${on.name}</a>
      ${!isOpen ? nothing : this.inside(children)}
    </li>`;
  }

  /** @param {Thing[] | null | undefined} children */
  inside(children) {
    if (children === null || children === undefined) {
      return html`<p class="quiet">Loading …</p>`;
    }
    return children.length === 0 ? html`<p class="quiet">no namespace</p>` : html`<ul>${children.map((each) => this.item(each))}</ul>`;
  }
}

customElements.define("lg-tree", Tree);
