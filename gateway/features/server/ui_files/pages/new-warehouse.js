// SPDX-License-Identifier: Apache-2.0
// A new warehouse: its store, the checks before it is created, and the proof that credentials stay in their scope.

import { html, nothing } from "lit";

import { ask, change, path } from "../core/api.js";
import { actionsOn, pageOf, projectOf, projects } from "../core/objects.js";
import { Page } from "../core/page.js";
import { checkList, scopeReport } from "../parts/checks.js";
import { field, projectChoice } from "../parts/forms.js";
import { asCode, title } from "../parts/heading.js";
import { problem } from "../parts/problem.js";
import { empty } from "../parts/small.js";
import "../parts/storage-form.js";

const DAY = 86_400;

/** @typedef {"form" | "checking" | "checked" | "creating" | "proving" | "done"} Step */

export default class NewWarehousePage extends Page {
  static properties = { ...Page.properties, step: { state: true }, checks: { state: true }, error: { state: true }, report: { state: true }, made: { state: true } };

  constructor() {
    super();
    /** @type {Step} */
    this.step = "form";
    /** @type {any} */
    this.checks = null;
    /** @type {unknown} */
    this.error = null;
    /** @type {any} */
    this.report = null;
    /** @type {any} */
    this.made = null;
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ query }) {
    const [all, project] = await Promise.all([projects(), projectOf(query.project)]);
    const actions = project === null ? new Set() : await actionsOn({ type: "project", id: project["project-id"], name: "" });
    return { all, project, actions };
  }

  /** Return the request that the form describes. @param {HTMLFormElement} form */
  requestOf(form) {
    const values = new FormData(form);
    const storage = /** @type {import("../parts/storage-form.js").StorageForm} */ (form.querySelector("lg-storage-form"));
    const credential = storage.credentialOf(values);
    const days = Number(values.get("days"));
    return {
      "warehouse-name": String(values.get("name")).trim(),
      "storage-profile": storage.profileOf(values),
      ...(credential === undefined ? {} : { "storage-credential": credential }),
      "delete-profile": days > 0 ? { type: "soft", "expiration-seconds": days * DAY } : { type: "hard" },
    };
  }

  /** Run a step. Its error is shown below the form. @param {Step} during @param {() => Promise<Step>} work */
  async during(during, work) {
    const before = this.step;
    this.step = during;
    this.error = null;
    try {
      this.step = await work();
    } catch (error) {
      this.error = error;
      this.step = before === "checked" ? "checked" : "form";
    }
  }

  /** @param {SubmitEvent} event @param {string} project */
  verify(event, project) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    this.checks = null;
    void this.during("checking", async () => {
      this.checks = await ask("/management/v1/warehouse-creation-validation", this.requestOf(form), { project });
      return this.checks.valid ? "checked" : "form";
    });
  }

  /** @param {string} project */
  create(project) {
    const form = /** @type {HTMLFormElement} */ (this.querySelector("form.wizard"));
    void this.during("creating", async () => {
      this.made = await change("POST", "/management/v1/warehouse", this.requestOf(form), { project });
      window.dispatchEvent(new Event("hierarchy-changed"));
      void this.prove();
      return "proving";
    });
  }

  prove() {
    return this.during("proving", async () => {
      this.report = await change("POST", "/management/v1" + path`/warehouse/${this.made["warehouse-id"]}/scope-report`);
      return "done";
    });
  }

  /** @param {any} data */
  body({ all, project, actions }) {
    if (project === null || !actions.has("create_warehouse")) {
      return html`${title("New warehouse")}
        ${empty("You may not create a warehouse in this project: it needs “create warehouse”.", "Ask an administrator of the project, or choose another one.")} ${project === null ? nothing : projectChoice(all, project["project-id"])}`;
    }
    const id = project["project-id"];
    const busy = this.step === "checking" || this.step === "creating";
    return html`${title("New warehouse", `In the project ${project["project-name"]}. The store is checked before the warehouse is created; nothing is kept of a failed check.`)}
      ${projectChoice(all, id)}
      <ol class="steps" aria-label="Steps">
        ${[["1. Store", ["form"]], ["2. Checks", ["checking", "checked"]], ["3. Create", ["creating"]], ["4. Proof of scope", ["proving", "done"]]].map(
          ([label, steps]) => html`<li aria-current=${steps.includes(this.step) ? "step" : "false"}>${label}</li>`,
        )}
      </ol>
      <form class="wizard" ?hidden=${this.made !== null} @submit=${(/** @type {SubmitEvent} */ event) => this.verify(event, id)} @input=${() => this.edited()}>
        ${field({ name: "name", label: "Name", required: true, help: "Clients use it to find the warehouse." })}
        <lg-storage-form></lg-storage-form>
        <fieldset><legend>Dropped tables</legend>
          ${field({ name: "days", label: "Can be restored for (days)", type: "number", value: "7", help: "0: their files are deleted at once." })}
        </fieldset>
        <p class="buttons">
          <button type="submit" class=${this.step === "checked" ? "" : "primary"} ?disabled=${busy}>${this.step === "checking" ? "Checking …" : "Verify"}</button>
          <button type="button" class="primary" ?disabled=${this.step !== "checked"} @click=${() => this.create(id)}>${this.step === "creating" ? "Creating …" : "Create"}</button>
        </p>
      </form>
      ${this.error === null ? nothing : problem(this.error)}
      ${this.step === "checking" || this.checks !== null ? html`<section aria-labelledby="checks"><h2 id="checks">Checks</h2>${checkList(this.checks)}</section>` : nothing}
      ${this.made === null ? nothing : this.result()} ${asCode()}`;
  }

  /** After a change of the form, the checks do not count any more. */
  edited() {
    if (this.step === "checked") {
      this.step = "form";
      this.checks = null;
    }
  }

  result() {
    const on = { type: /** @type {const} */ ("warehouse"), id: this.made["warehouse-id"], name: this.made.name, project: this.made["project-id"] };
    return html`<section aria-labelledby="made">
      <h2 id="made">The warehouse ${this.made.name} was created</h2>
      ${this.report === null
        ? html`<p role="status">Credentials try to leave their scope; this takes up to a minute. <progress aria-label="Proof of scope"></progress></p>`
        : scopeReport(this.report)}
      <p><a class="button" href=${pageOf(on)}>Open the warehouse</a></p>
    </section>`;
  }
}
