// SPDX-License-Identifier: Apache-2.0
// The first run of a server: its first user accepts the terms and becomes its administrator.

import { html, nothing } from "lit";

import { change, get } from "../core/api.js";
import { Page } from "../core/page.js";
import { go } from "../core/router.js";
import { asCode, title } from "../parts/heading.js";
import { problem } from "../parts/problem.js";

export default class FirstRunPage extends Page {
  static properties = { ...Page.properties, error: { state: true } };

  constructor() {
    super();
    /** @type {unknown} */
    this.error = null;
  }

  async load() {
    return get("/management/v1/info");
  }

  /** @param {SubmitEvent} event */
  async accept(event) {
    event.preventDefault();
    this.error = null;
    try {
      await change("POST", "/management/v1/bootstrap", { "accept-terms-of-use": true });
      window.dispatchEvent(new Event("hierarchy-changed"));
      go("#/");
    } catch (error) {
      this.error = error;
    }
  }

  /** @param {any} info */
  body(info) {
    if (info.bootstrapped) {
      return html`${title("First run", "This server has an administrator already. Ask an administrator for rights.")} ${asCode()}`;
    }
    return html`${title("First run", "This server is new. You become its first administrator: you grant rights to others, and get no right to data.")}
      <form class="wizard" @submit=${this.accept}>
        <p>Lakegate is licensed under the Apache License 2.0, as is, without warranty. The gateway records who does what in its audit log.</p>
        <div class="check"><label><input type="checkbox" name="terms" required /> I accept the terms of use</label></div>
        <p><button type="submit" class="primary">Become the administrator</button></p>
      </form>
      ${this.error === null ? nothing : problem(this.error)} ${asCode()}`;
  }
}
