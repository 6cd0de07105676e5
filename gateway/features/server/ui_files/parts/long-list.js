// SPDX-License-Identifier: Apache-2.0
// Long lists: only the visible rows are in the document. Rows come from the server page by page while the reader scrolls.
// All rows have one height, so the visible ones follow from the scroll position without a library.

import { LitElement, html, nothing } from "lit";

import { count } from "../core/format.js";
import { problem } from "./problem.js";

/** Height of a row in CSS pixels, as in the style sheet. */
const ROW = 34;
/** Rows that are drawn above and below the visible ones. */
const MARGIN = 10;

/**
 * A list with columns. Set `columns`, and either `rows` or `source`, which returns the rows of a page by its token.
 * @typedef {{label: string, draw: (row: any) => unknown, width?: string}} Column
 * @typedef {(token: string | null) => Promise<{rows: any[], next: string | null}>} Source
 */
export class LongList extends LitElement {
  static properties = {
    label: {},
    columns: { attribute: false },
    rows: { attribute: false },
    source: { attribute: false },
    empty: { attribute: false },
    failure: { state: true },
    busy: { state: true },
    top: { state: true },
  };

  constructor() {
    super();
    this.label = "";
    /** @type {Column[]} */
    this.columns = [];
    /** @type {any[]} */
    this.rows = [];
    /** @type {Source | null} */
    this.source = null;
    /** @type {unknown} */
    this.empty = "Nothing here.";
    /** @type {unknown} */
    this.failure = null;
    this.busy = false;
    /** @type {string | null} */
    this.next = null;
    /** The first visible row. */
    this.top = 0;
  }

  createRenderRoot() {
    return this;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("source") && this.source !== null) {
      this.rows = [];
      this.top = 0;
      void this.more(null);
    }
  }

  /** Read the next page. @param {string | null} token */
  async more(token) {
    const source = this.source;
    if (source === null || (this.busy && token !== null)) {
      return;
    }
    this.busy = true;
    try {
      const { rows, next } = await source(token);
      if (source === this.source) {
        this.rows = token === null ? rows : [...this.rows, ...rows];
        this.next = next;
        this.failure = null;
      }
    } catch (error) {
      this.failure = error;
    } finally {
      this.busy = false;
    }
  }

  /** Return the number of rows that fit into the box. */
  fitting() {
    return Math.ceil(Math.max(320, window.innerHeight * 0.6) / ROW);
  }

  /** @param {Event} event */
  scrolled(event) {
    this.top = Math.floor(/** @type {HTMLElement} */ (event.target).scrollTop / ROW);
    if (this.top + this.fitting() >= this.rows.length - 2 * MARGIN && this.next !== null && !this.busy) {
      void this.more(this.next);
    }
  }

  // Styles are set as properties, because the page's policy forbids style attributes.
  updated() {
    const set = (/** @type {string} */ css, /** @type {Partial<CSSStyleDeclaration>} */ style) => {
      for (const each of /** @type {NodeListOf<HTMLElement>} */ (this.querySelectorAll(css))) {
        Object.assign(each.style, style);
      }
    };
    set(".rows", { height: `${Math.min(this.rows.length, this.fitting()) * ROW + 2}px` });
    set(".space", { height: `${this.rows.length * ROW}px` });
    set(".drawn", { transform: `translateY(${this.first() * ROW}px)` });
    const widths = this.columns.map((each) => each.width ?? "minmax(8rem, 1fr)");
    set("[role=row]", { gridTemplateColumns: widths.join(" ") });
    // On a narrow screen the list scrolls sideways, with its head.
    const least = widths.reduce((sum, each) => sum + Number(/([\d.]+)rem/.exec(each)?.[1] ?? 8), 0);
    set(".head, .rows", { minWidth: `${least}rem` });
  }

  first() {
    return Math.max(0, this.top - MARGIN);
  }

  render() {
    if (this.failure !== null) {
      return problem(this.failure);
    }
    if (this.rows.length === 0) {
      return this.busy ? html`<p class="loading" role="status">Loading …</p>` : html`<p class="empty">${this.empty}</p>`;
    }
    const total = this.next === null ? this.rows.length : -1;
    return html`<div class="long-list" role="table" aria-label=${this.label} aria-rowcount=${total}>
        <div role="rowgroup" class="head">
          <div role="row">${this.columns.map((each) => html`<span role="columnheader">${each.label}</span>`)}</div>
        </div>
        <div role="rowgroup" class="rows" tabindex="0" aria-label="${this.label}, rows" @scroll=${this.scrolled}>
          <div class="space" role="presentation">
            <div class="drawn" role="presentation">
              ${this.rows.slice(this.first(), this.top + this.fitting() + MARGIN).map((row, at) => this.line(row, this.first() + at))}
            </div>
          </div>
        </div>
      </div>
      <p class="quiet">${count(this.rows.length)} ${this.rows.length === 1 ? "row" : "rows"}${this.next === null ? nothing : "; scroll for more"}</p>`;
  }

  /** @param {any} row @param {number} index */
  line(row, index) {
    return html`<div role="row" aria-rowindex=${index + 2}>${this.columns.map((each) => html`<span role="cell">${each.draw(row)}</span>`)}</div>`;
  }
}

customElements.define("lg-long-list", LongList);
