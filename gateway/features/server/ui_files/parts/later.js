// SPDX-License-Identifier: Apache-2.0
// A part of a page that is loaded when its tab opens.

import { LitElement, html } from "lit";

import { problem } from "./problem.js";

/** Set `load`, which returns the data, and `draw`. The data is loaded again when `load` is another function. */
class Later extends LitElement {
  static properties = { load: { attribute: false }, draw: { attribute: false }, data: { state: true }, failure: { state: true } };

  constructor() {
    super();
    /** @type {() => Promise<any>} */
    this.load = async () => null;
    /** @type {(data: any) => unknown} */
    this.draw = () => "";
    /** @type {any} */
    this.data = undefined;
    /** @type {unknown} */
    this.failure = null;
  }

  createRenderRoot() {
    return this;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("load")) {
      this.data = undefined;
      this.failure = null;
      void this.read(this.load);
    }
  }

  /** @param {() => Promise<any>} load */
  async read(load) {
    try {
      const data = await load();
      if (load === this.load) {
        this.data = data;
      }
    } catch (error) {
      this.failure = error;
    }
  }

  render() {
    if (this.failure !== null) {
      return problem(this.failure);
    }
    return this.data === undefined ? html`<p class="loading" role="status">Loading …</p>` : this.draw(this.data);
  }
}

customElements.define("lg-later", Later);
