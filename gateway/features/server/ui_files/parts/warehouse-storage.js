// SPDX-License-Identifier: Apache-2.0
// The storage of a warehouse: its settings and credential, checks before a change, and the proof of scope.

import { LitElement, html, nothing } from "lit";

import { ask, change, get } from "../core/api.js";
import { managementPath } from "../core/objects.js";
import { checkList, scopeReport } from "./checks.js";
import { problem } from "./problem.js";
import "./storage-form.js";
import { STORES, storeOf } from "./storage-kinds.js";

class WarehouseStorage extends LitElement {
  static properties = { on: { attribute: false }, actions: { attribute: false }, editing: { state: true }, checks: { state: true }, report: { state: true }, busy: { state: true }, error: { state: true }, notice: { state: true } };

  constructor() {
    super();
    /** @type {any} */
    this.on = null;
    /** @type {Set<string>} */
    this.actions = new Set();
    /** The form that is open. @type {"" | "storage" | "credential"} */
    this.editing = "";
    /** @type {any} */
    this.checks = null;
    /** @type {any} */
    this.report = null;
    this.busy = false;
    /** @type {unknown} */
    this.error = null;
    this.notice = "";
  }

  createRenderRoot() {
    return this;
  }

  connectedCallback() {
    super.connectedCallback();
    if (this.actions.has("get_metadata")) {
      get(`${managementPath(this.on)}/scope-report`).then((report) => (this.report = report), () => undefined);
    }
  }

  /** @param {() => Promise<unknown>} work */
  async run(work) {
    this.busy = true;
    this.error = null;
    this.notice = "";
    try {
      await work();
    } catch (error) {
      this.error = error;
    } finally {
      this.busy = false;
    }
  }

  /** Check with the form, or the stored settings if no form is open. */
  check() {
    return this.run(async () => {
      this.checks = null;
      const [kind, body] = this.request();
      this.checks = await ask(`${managementPath(this.on)}/storage/validate-${kind}`, body);
    });
  }

  /** Return the kind of the check and its body. @returns {["access" | "profile" | "credential", unknown]} */
  request() {
    if (this.editing === "") {
      return ["access", undefined];
    }
    const form = /** @type {HTMLFormElement} */ (this.querySelector("form.wizard"));
    const storage = /** @type {import("./storage-form.js").StorageForm} */ (form.querySelector("lg-storage-form"));
    const credential = storage.credentialOf(new FormData(form));
    return this.editing === "credential"
      ? ["credential", { "new-storage-credential": credential }]
      : ["profile", { "storage-profile": storage.profileOf(new FormData(form)), ...(credential === undefined ? {} : { "storage-credential": credential }) }];
  }

  /** @param {SubmitEvent} event */
  save(event) {
    event.preventDefault();
    void this.run(async () => {
      const part = this.editing;
      const [, body] = this.request();
      await change("POST", managementPath(this.on) + (part === "credential" ? "/storage-credential" : "/storage"), body);
      this.editing = "";
      this.notice = "Saved. Credentials that were issued before stay valid until they expire; revoke the old credential at the store to end them.";
      this.dispatchEvent(new CustomEvent("warehouse-changed", { bubbles: true }));
    });
  }

  prove() {
    return this.run(async () => {
      this.report = await change("POST", `${managementPath(this.on)}/scope-report`);
    });
  }

  render() {
    const row = this.on.row;
    const allowed = this.actions.has("update_storage");
    const missing = "needs “manage_storage” on the warehouse; ask a principal that manages the project's grants";
    const open = (/** @type {"" | "storage" | "credential"} */ part) => () => {
      this.editing = part;
      this.checks = null;
    };
    const credential = row["storage-credential-type"]?.["credential-type"] ?? "";
    return html`<p role="status">${this.notice}</p>
      ${this.editing === "" ? this.facts(row, credential) : nothing}
      ${this.editing === ""
        ? html`<p class="buttons">
            <button type="button" ?disabled=${!allowed} title=${allowed ? "" : missing} @click=${open("storage")}>Change the settings …</button>
            <button type="button" ?disabled=${!allowed} title=${allowed ? "" : missing} @click=${open("credential")}>Replace the credential …</button>
            <button type="button" ?disabled=${!allowed || this.busy} title=${allowed ? "" : missing} @click=${() => this.check()}>Check the store now</button>
          </p>
          ${allowed ? nothing : html`<p class="quiet">A change ${missing}.</p>`}`
        : html`<form class="wizard" @submit=${this.save}>
            <lg-storage-form .profile=${row["storage-profile"]} credential=${credential} only=${this.editing === "credential" ? "credential" : ""}></lg-storage-form>
            <p class="buttons">
              <button type="button" ?disabled=${this.busy} @click=${() => this.check()}>Verify</button>
              <button type="submit" class="primary" ?disabled=${this.busy || !this.checks?.valid}>Save</button>
              <button type="button" @click=${open("")}>Cancel</button>
            </p>
            <p class="quiet">Bucket, folder and region cannot change, because the tables are there. Verify before you save.</p>
          </form>`}
      ${this.error === null ? nothing : problem(this.error)}
      ${this.checks !== null || this.busy ? checkList(this.checks) : nothing}
      ${this.report === null ? nothing : scopeReport(this.report)}
      <p><button type="button" ?disabled=${!allowed || this.busy} title=${allowed ? "" : missing} @click=${() => this.prove()}>Prove the scope again</button></p>`;
  }

  /** @param {any} row @param {string} credential */
  facts(row, credential) {
    const profile = row["storage-profile"];
    const store = STORES[storeOf(profile, credential)];
    const texts = new Map((store?.profile ?? []).map((each) => [each.name, each.label]));
    return html`<dl class="facts">
      <dt>Store</dt><dd>${store?.label ?? profile.type}</dd>
      <dt>Credential</dt><dd>${store?.credentials[credential]?.label ?? (credential || "none")}</dd>
      ${Object.entries(profile)
        .filter(([name, value]) => name !== "type" && value !== null)
        .map(([name, value]) => html`<dt>${texts.get(name) ?? name}</dt><dd><code>${typeof value === "object" ? JSON.stringify(value) : value === true ? "yes" : value === false ? "no" : value}</code></dd>`)}
    </dl>`;
  }
}

customElements.define("lg-warehouse-storage", WarehouseStorage);
