// SPDX-License-Identifier: Apache-2.0
// A project: its warehouses, the rights on it, its statistics, and what can be done with it.

import { html } from "lit";

import { change, get } from "../core/api.js";
import { actionsOn, pageOf, warehouses } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address, go } from "../core/router.js";
import { accessTabs } from "../parts/access.js";
import { confirmDestruction, openDialog } from "../parts/dialog.js";
import { entry, field, yaml } from "../parts/forms.js";
import { asCode, heading } from "../parts/heading.js";
import "../parts/long-list.js";
import { menu } from "../parts/menu.js";
import { badge } from "../parts/small.js";
import "../parts/statistics.js";
import { STORES, storeOf } from "../parts/storage-kinds.js";
import { tabs } from "../parts/tabs.js";

const COLUMNS = [
  { label: "Name", draw: (/** @type {any} */ row) => html`<a href=${pageOf({ type: "warehouse", id: row["warehouse-id"], name: row.name, project: row["project-id"] })}>${row.name}</a>` },
  { label: "State", draw: (/** @type {any} */ row) => badge(row.status, row.status === "active" ? "good" : "warn"), width: "8rem" },
  { label: "Store", draw: (/** @type {any} */ row) => STORES[storeOf(row["storage-profile"], row["storage-credential-type"]?.["credential-type"])]?.label ?? row["storage-profile"].type },
  { label: "Protected", draw: (/** @type {any} */ row) => (row.protected ? "yes" : "no"), width: "8rem" },
  { label: "Id", draw: (/** @type {any} */ row) => html`<code>${row["warehouse-id"]}</code>`, width: "minmax(12rem, 2fr)" },
];

function create() {
  let id = "";
  void openDialog({
    title: "Create a project",
    action: "Create",
    body: html`${field({ name: "name", label: "Name", required: true })} ${field({ name: "id", label: "Id", help: "Letters, digits and hyphens; it cannot change. Empty: a random id." })}`,
    submit: async (values) => {
      const made = await change("POST", "/management/v1/project", { "project-name": values.name, ...(values.id === "" ? {} : { "project-id": values.id }) });
      id = made["project-id"];
    },
  }).then((done) => {
    if (done) {
      window.dispatchEvent(new Event("hierarchy-changed"));
      go(address("project", [encodeURIComponent(id)]));
    }
  });
}

export default class ProjectPage extends Page {
  static properties = { ...Page.properties, notice: { state: true } };

  constructor() {
    super();
    this.notice = "";
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ parts }) {
    const id = decodeURIComponent(parts[0] ?? "");
    const project = await get("/management/v1/project", { project: id });
    const on = { type: /** @type {const} */ ("project"), id, name: project["project-name"], project: id };
    const [actions, server, rows] = await Promise.all([actionsOn(on), actionsOn({ type: "server", id: "", name: "" }), warehouses(id)]);
    return { on, actions, server, rows };
  }

  /** @param {any} data */
  body({ on, actions, server, rows }) {
    return html`${heading(on, {
        menu: menu("Project", [
          entry("New warehouse …", actions, "create_warehouse", "this project", () => go(address("new-warehouse", [], { project: on.id }))),
          entry("Rename …", actions, "rename", "this project", () => this.rename(on)),
          entry("Delete …", actions, "delete", "this project", () => this.delete(on)),
          entry("Create another project …", server, "create_project", "the server", create),
        ]),
      })}
      <p role="status">${this.notice}</p>
      ${tabs({
        warehouses: {
          label: "Warehouses",
          draw: () => html`<lg-long-list label="Warehouses" .rows=${rows} .columns=${COLUMNS} .empty=${"No warehouse here that you may see. Create one from the menu."}></lg-long-list>`,
        },
        ...accessTabs(on),
        requests: { label: "Requests over time", draw: () => html`<lg-endpoint-statistics project=${on.id}></lg-endpoint-statistics>` },
      })}
      ${asCode(`version: 1\nprojects:\n  - id: ${yaml(on.id)}\n    name: ${yaml(on.name)}\n`)}`;
  }

  /** @param {any} on */
  rename(on) {
    void openDialog({
      title: "Rename the project",
      action: "Rename",
      body: html`${field({ name: "name", label: "New name", value: on.name, required: true })}<p>Its id stays, so clients are not concerned.</p>`,
      submit: ({ name }) => change("POST", "/management/v1/project/rename", { "new-name": name }, { project: on.id }),
    }).then((done) => {
      if (done) {
        this.notice = "The project was renamed.";
        window.dispatchEvent(new Event("hierarchy-changed"));
        void this.reload();
      }
    });
  }

  /** @param {any} on */
  delete(on) {
    void confirmDestruction({
      title: "Delete the project",
      name: on.name,
      action: "Delete",
      consequence: html`The project ${on.name}, its roles, tags, data policies and all grants in it are deleted. This cannot be undone. It must have no warehouses.`,
      submit: () => change("DELETE", "/management/v1/project", undefined, { project: on.id }),
    }).then((done) => {
      if (done) {
        window.dispatchEvent(new Event("hierarchy-changed"));
        go("#/");
      }
    });
  }
}
