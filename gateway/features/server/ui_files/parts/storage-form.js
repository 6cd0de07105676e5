// SPDX-License-Identifier: Apache-2.0
// The form of a store: its kind, the fields of its profile, and the fields of its credential.

import { LitElement, html, nothing } from "lit";

import { field } from "./forms.js";
import { LAYOUTS, STORES, storeOf } from "./storage-kinds.js";

/** @typedef {import("./storage-kinds.js").StoreField} StoreField */

/** Return the values of fields as members of a body; empty texts are left out. @param {StoreField[]} fields @param {FormData} form @param {string} start */
function membersOf(fields, form, start) {
  /** @type {Record<string, unknown>} */
  const found = {};
  for (const { name, type, kind } of fields) {
    const value = String(form.get(start + name) ?? "").trim();
    if (type === "checkbox") {
      found[name] = value === "true";
    } else if (name === "storage-layout") {
      found[name] = LAYOUTS[value];
    } else if (value !== "") {
      found[name] = kind === "number" ? Number(value) : value;
    }
  }
  return found;
}

/** The form of a store. `profile` and `credential` are those of a warehouse that exists; then its store cannot change. */
export class StorageForm extends LitElement {
  static properties = { profile: { attribute: false }, credential: {}, only: {}, store: { state: true }, kind: { state: true } };

  constructor() {
    super();
    /** @type {any} */
    this.profile = null;
    this.credential = "";
    /** @type {"" | "credential"} */
    this.only = "";
    this.store = "";
    this.kind = "";
  }

  createRenderRoot() {
    return this;
  }

  willUpdate() {
    if (this.store === "") {
      this.store = this.profile === null ? "aws" : storeOf(this.profile, this.credential);
    }
    const kinds = Object.keys(STORES[this.store].credentials);
    if (!kinds.includes(this.kind)) {
      this.kind = kinds.includes(this.credential) ? this.credential : (kinds[0] ?? "");
    }
  }

  /** Return the profile that the form contains. @param {FormData} form */
  profileOf(form) {
    const { type, fixed, profile } = STORES[this.store];
    const filled = membersOf(profile, form, "p-");
    // A custom layout has templates that the form does not show.
    if (this.profile !== null && this.profile["storage-layout"]?.type === /** @type {any} */ (filled["storage-layout"])?.type) {
      filled["storage-layout"] = this.profile["storage-layout"];
    }
    const kept = { ...this.profile };
    profile.forEach(({ name }) => delete kept[name]);
    return { ...kept, type, ...fixed, ...filled };
  }

  /** Return the credential that the form contains; undefined for a store without credentials. @param {FormData} form */
  credentialOf(form) {
    const { type, credentials } = STORES[this.store];
    const kind = credentials[this.kind];
    if (kind === undefined) {
      return undefined;
    }
    const members = membersOf(kind.fields, form, "c-");
    if (this.kind === "service-account-key") {
      try {
        members.key = JSON.parse(String(members.key));
      } catch {
        throw new Error("The key file is not JSON. Paste the whole file of the service account.");
      }
    }
    return { type, "credential-type": this.kind, ...members };
  }

  /** @param {StoreField} each @param {string} start */
  input(each, start) {
    const stored = start === "p-" && this.profile !== null ? this.profile[each.name] : undefined;
    const text = stored === undefined || stored === null ? each.value : typeof stored === "object" ? stored.type : String(stored);
    return field({ ...each, name: start + each.name, value: this.profile !== null && start === "p-" && stored === null ? "" : text });
  }

  render() {
    const { help, profile, credentials } = STORES[this.store];
    const kinds = Object.entries(credentials);
    const fields = credentials[this.kind]?.fields ?? [];
    const store = (/** @type {Event} */ event) => (this.store = /** @type {HTMLSelectElement} */ (event.target).value);
    const kind = (/** @type {Event} */ event) => (this.kind = /** @type {HTMLSelectElement} */ (event.target).value);
    return html`${this.only === "credential"
        ? nothing
        : html`<fieldset><legend>Store</legend>
            ${this.profile !== null
              ? nothing
              : html`<div class="field"><label for="store">Kind of store</label>
                  <select id="store" @change=${store}>${Object.entries(STORES).map(([name, each]) => html`<option value=${name} ?selected=${name === this.store}>${each.label}</option>`)}</select></div>`}
            <p class="quiet">${help}</p>
            ${profile.filter((each) => !each.more).map((each) => this.input(each, "p-"))}
            <details><summary>More settings</summary>${profile.filter((each) => each.more).map((each) => this.input(each, "p-"))}</details>
          </fieldset>`}
      ${kinds.length === 0
        ? nothing
        : html`<fieldset><legend>Credential of the gateway</legend>
            <div class="field"><label for="credential-kind">Kind of credential</label>
              <select id="credential-kind" @change=${kind}>${kinds.map(([name, each]) => html`<option value=${name} ?selected=${name === this.kind}>${each.label}</option>`)}</select></div>
            ${fields.map((each) => this.input(each, "c-"))}
          </fieldset>`}`;
  }
}

customElements.define("lg-storage-form", StorageForm);
