// SPDX-License-Identifier: Apache-2.0
// A field for a user or a role: it suggests found ones, and takes an id that the caller may not search.

import { LitElement, html } from "lit";

import { ask } from "../core/api.js";

const WAIT_MS = 250;
let number = 0;

/** A field of a form: its value is `user/oidc~bob` or `role/its-id`, as `identityOf` reads it. */
class PrincipalPicker extends LitElement {
  static properties = { name: {}, label: {}, value: {}, hint: {}, project: {}, optional: { type: Boolean }, only: {}, found: { state: true } };

  constructor() {
    super();
    this.name = "principal";
    this.label = "Person or role";
    this.value = "";
    this.hint = "a name, user/its-id or role/its-id";
    /** @type {string | undefined} */
    this.project = undefined;
    this.optional = false;
    /** @type {"" | "user" | "role"} */
    this.only = "";
    /** @type {{value: string, label: string}[]} */
    this.found = [];
    this.list = `principals-${++number}`;
    this.timer = 0;
    this.turn = 0;
  }

  createRenderRoot() {
    return this;
  }

  /** @param {InputEvent} event */
  typed(event) {
    const text = /** @type {HTMLInputElement} */ (event.target).value.trim();
    window.clearTimeout(this.timer);
    const turn = ++this.turn;
    if (text.length < 2 || this.found.some((each) => each.value === text)) {
      return;
    }
    this.timer = window.setTimeout(async () => {
      const found = await this.search(text.replace(/^(user|role)\//, ""));
      if (turn === this.turn) {
        this.found = found;
      }
    }, WAIT_MS);
  }

  /** Return the users and roles that match. Those that the caller may not search are left out. @param {string} search */
  async search(search) {
    const users = async () => (await ask("/management/v1/search/user", { search })).users;
    const roles = async () => (await ask("/management/v1/search/role", { search }, { project: this.project })).roles;
    const none = async () => [];
    const answers = await Promise.allSettled([this.only === "role" ? none() : users(), this.only === "user" ? none() : roles()]);
    return answers.flatMap((answer, at) =>
      answer.status === "rejected"
        ? []
        : answer.value.map((/** @type {any} */ each) => ({
            value: at === 0 ? `user/${each.id}` : `role/${each.id}`,
            label: at === 0 ? `${each.name} (${each["user-type"] === "human" ? "person" : "application"})` : `${each.name} (role)`,
          })),
    );
  }

  render() {
    return html`<label>${this.label}
        <input name=${this.name} .value=${this.value} placeholder=${this.hint} list=${this.list} ?required=${!this.optional} autocomplete="off" spellcheck="false" @input=${this.typed} />
      </label>
      <datalist id=${this.list}>${this.found.map((each) => html`<option value=${each.value}>${each.label}</option>`)}</datalist>`;
  }
}

customElements.define("lg-principal-picker", PrincipalPicker);
