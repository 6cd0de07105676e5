// SPDX-License-Identifier: Apache-2.0
// The console: sign-in, the frame around each page, and the page of the address.

import { LitElement, html, nothing } from "lit";

import { ask, forgetAll, get } from "./core/api.js";
import { config } from "./core/config.js";
import { learnDefaultProject } from "./core/objects.js";
import { address, current } from "./core/router.js";
import { ROUTES } from "./core/routes.js";
import * as session from "./core/session.js";
import "./parts/tree.js";
import "./parts/search.js";

/** Return the caller. The first visit creates the user's own record, which gives no right. */
async function whoAmI() {
  try {
    return await get("/management/v1/whoami");
  } catch (error) {
    if (error instanceof Error && "status" in error && error.status === 404) {
      await ask("/management/v1/user", {});
      return get("/management/v1/whoami");
    }
    throw error;
  }
}

class Console extends LitElement {
  static properties = {
    route: { state: true },
    page: { state: true },
    me: { state: true },
    notice: { state: true },
    problem: { state: true },
    ready: { state: true },
  };

  constructor() {
    super();
    this.route = current();
    /** @type {HTMLElement | null} */
    this.page = null;
    /** @type {any} */
    this.me = null;
    this.notice = "";
    this.problem = "";
    this.ready = false;
  }

  createRenderRoot() {
    this.replaceChildren();
    return this;
  }

  connectedCallback() {
    super.connectedCallback();
    window.addEventListener("hashchange", () => this.follow());
    window.addEventListener("session-ended", () => this.end("Your sign-in has ended."));
    void this.begin();
  }

  async begin() {
    const given = new URLSearchParams(window.location.search);
    if (given.size > 0) {
      // Remove the code first, before any error, so that it is not stored in the history or a bookmark.
      const denial = given.get("denial");
      window.history.replaceState(null, "", "/ui" + (denial === null ? window.location.hash : address("denial", [encodeURIComponent(denial)])));
    }
    try {
      if (given.has("state")) {
        window.history.replaceState(null, "", "/ui" + (await session.completeSignIn(given)));
      }
      if (session.hasSession()) {
        [this.me] = await Promise.all([whoAmI(), learnDefaultProject()]);
        await this.follow();
      } else {
        this.notice = "You are not signed in.";
      }
    } catch (error) {
      this.end(error instanceof session.SessionEnded ? error.message : "You are not signed in.");
      this.problem = error instanceof session.SessionEnded || !(error instanceof Error) ? "" : error.message;
    }
    this.ready = true;
  }

  /** End the session in this tab. @param {string} notice */
  end(notice) {
    session.signOut();
    forgetAll();
    // Dialogs are outside of the page, and show what the former user read.
    document.querySelectorAll("dialog").forEach((each) => each.close());
    this.me = null;
    this.page = null;
    this.notice = notice;
  }

  /** Show the page of the address. */
  async follow() {
    this.route = current();
    if (this.me === null) {
      return;
    }
    const entry = Object.hasOwn(ROUTES, this.route.kind) ? ROUTES[this.route.kind] : ROUTES.home;
    let Page;
    try {
      ({ default: Page } = await entry.open());
    } catch {
      this.problem = "A part of the console could not be loaded. Reload the page; if the gateway was updated, the console is new.";
      return;
    }
    this.problem = "";
    const tag = `lg-page-${Object.hasOwn(ROUTES, this.route.kind) ? this.route.kind : "home"}`;
    if (customElements.get(tag) === undefined) {
      customElements.define(tag, Page);
    }
    const page = this.page?.localName === tag ? this.page : document.createElement(tag);
    Object.assign(page, { route: this.route });
    if (page !== this.page) {
      this.page = page;
      window.scrollTo(0, 0);
    }
  }

  updated() {
    if (this.me === null) {
      document.title = "Lakegate";
    }
  }

  render() {
    return html`<a class="skip" href="#main" @click=${(/** @type {Event} */ event) => this.skip(event)}>Skip to the page</a>
      <header>
        <a class="brand" href="#/"><img src=${new URL("mark.svg", import.meta.url).pathname} alt="" width="28" height="28" />Lakegate</a>
        ${this.me === null ? nothing : html`<lg-search></lg-search>`}
        <nav aria-label="Account" class="account">
          ${config.interface ? html`<a href="/swagger-ui/">API</a>` : nothing}
          ${this.me === null
            ? nothing
            : html`<a href=${address("user", [encodeURIComponent(this.me.id)])} id="me">${this.me.name}</a>
                <button id="sign-out" type="button" @click=${() => this.end("You are signed out here.")}>Sign out</button>`}
        </nav>
      </header>
      ${this.me === null ? this.welcome() : this.frame()}`;
  }

  /** Move the focus to the page; the address stays. @param {Event} event */
  skip(event) {
    event.preventDefault();
    /** @type {HTMLElement | null} */ (this.querySelector("#main"))?.focus();
  }

  frame() {
    return html`<div class="frame">
      <aside aria-label="Catalog and pages">
        <lg-tree></lg-tree>
        ${this.mainMenu()}
      </aside>
      <main id="main" tabindex="-1">${this.problem === "" ? nothing : html`<p role="alert" class="problem">${this.problem}</p>`}${this.page ?? html`<p class="loading" role="status">Loading …</p>`}</main>
    </div>`;
  }

  mainMenu() {
    const entries = Object.entries(ROUTES).filter(([, { menu }]) => menu !== undefined);
    const groups = [...new Set(entries.map(([, { group }]) => group ?? ""))];
    return groups.map(
      (name) => html`<nav aria-label=${name} class="pages">
        <h2>${name}</h2>
        ${entries
          .filter(([, { group }]) => (group ?? "") === name)
          .map(([kind, { menu }]) => html`<a href=${address(kind)} aria-current=${this.route.kind === kind ? "page" : "false"}>${menu}</a>`)}
      </nav>`,
    );
  }

  welcome() {
    const endSession = session.endSessionAddress();
    return html`<main id="main" tabindex="-1" class="welcome">
      <h1>Sign in</h1>
      <p role="status" id="status">${this.obstacle() ?? this.notice}</p>
      ${this.problem === "" ? nothing : html`<p role="alert" id="problem" class="problem">${this.problem}</p>`}
      ${this.ready && this.obstacle() === null
        ? html`<p>Your identity provider logs you in and issues a token. The token is stored in this tab only, and is deleted when you close the tab.</p>
            <p><button id="sign-in" type="button" class="primary" @click=${() => this.signIn()}>Sign in</button></p>
            ${endSession === null ? nothing : html`<p><a href=${endSession}>Also end the session at the provider</a></p>`}`
        : nothing}
    </main>`;
  }

  /** Return why users cannot sign in here; null if they can. */
  obstacle() {
    if (!config.setUp) {
      return "Sign-in with a browser is not configured: the operator must set UI__OPENID_CLIENT_ID.";
    }
    if (config.signIn === null) {
      return "The identity provider does not answer. Try again later.";
    }
    return window.isSecureContext ? null : "Signing in needs https, or a gateway on this machine (localhost).";
  }

  async signIn() {
    try {
      await session.signIn();
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    }
  }
}

customElements.define("lg-console", Console);
