// SPDX-License-Identifier: Apache-2.0
// The base of pages: a page loads its data for an address, and draws it. Errors are drawn in its place.

import { LitElement, html, nothing } from "lit";

import { ApiError, leavePage } from "./api.js";
import { NotHere } from "./objects.js";
import { SessionEnded } from "./session.js";
import { pageProblem } from "../parts/problem.js";

/** @typedef {import("./router.js").Route} Route */

/** A page. Subclasses have `load`, which returns the data of an address, and `body`, which draws it. */
export class Page extends LitElement {
  static properties = {
    route: { attribute: false },
    data: { state: true },
    failure: { state: true },
    loading: { state: true },
  };

  constructor() {
    super();
    /** @type {Route} */
    this.route = { kind: "", parts: [], query: {} };
    /** @type {any} */
    this.data = null;
    /** @type {unknown} */
    this.failure = null;
    this.loading = true;
    this.turn = 0;
  }

  // The elements are in the document itself, so that one style sheet and the browser's search reach them.
  createRenderRoot() {
    return this;
  }

  /** Return the data of the page. @param {Route} _route @returns {Promise<any>} */
  async load(_route) {
    return {};
  }

  /** Draw the page. @param {any} _data @returns {unknown} */
  body(_data) {
    return nothing;
  }

  /** Return True if `to` is another state of the same data, such as another tab: nothing is loaded again.
   * @param {Route} from @param {Route} to */
  same(from, to) {
    return from.kind === to.kind && from.parts.join("/") === to.parts.join("/") && from.query.project === to.query.project;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    const from = /** @type {Route | undefined} */ (changed.get("route"));
    if (changed.has("route") && (from === undefined || !this.same(from, this.route))) {
      this.data = null;
      leavePage();
      void this.reload();
    }
  }

  /** Load the data again, after a change. */
  async reload() {
    const turn = ++this.turn;
    this.loading = true;
    try {
      const data = await this.load(this.route);
      if (turn === this.turn) {
        this.data = data;
        this.failure = null;
      }
    } catch (error) {
      if (turn === this.turn) {
        this.fail(error);
      }
    } finally {
      if (turn === this.turn) {
        this.loading = false;
      }
    }
  }

  /** Draw an error in place of the page. @param {unknown} error */
  fail(error) {
    if (!(error instanceof ApiError || error instanceof NotHere || error instanceof SessionEnded)) {
      console.error(error);
    }
    this.failure = error;
  }

  render() {
    if (this.failure !== null) {
      return pageProblem(this.failure);
    }
    if (this.data === null) {
      return html`<p class="loading" role="status">Loading …</p>`;
    }
    return this.body(this.data);
  }
}
