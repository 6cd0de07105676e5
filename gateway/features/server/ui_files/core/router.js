// SPDX-License-Identifier: Apache-2.0
// Addresses of the console. They are behind `#`, so names of tables reach no log of a proxy, and the page for the
// sign-in stays one address. `#/table/demo/hr.people?tab=access` is a page, `tab` is its state.

/**
 * A page's address: `kind` names the page, `parts` are its names, `query` is its state.
 * @typedef {{kind: string, parts: string[], query: Record<string, string>}} Route
 */

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Return the names of a path of namespaces and a name: each is encoded, and dots separate them.
 * @param {string[]} levels */
export function dotted(levels) {
  return levels.map((each) => encodeURIComponent(each).replaceAll(".", "%2E")).join(".");
}

/** Return the levels of a text that `dotted` returned. @param {string} text */
export function levelsOf(text) {
  return text.split(".").map(decode);
}

/** @param {string} hash @returns {Route} */
export function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [kind = "", ...parts] = path.split("/");
  return { kind: kind || "home", parts, query: Object.fromEntries(new URLSearchParams(search)) };
}

/**
 * Return the address of a page. `parts` must be encoded already, as by `dotted`; empty state is left out.
 * @param {string} kind
 * @param {string[]} [parts]
 * @param {Record<string, string | undefined | null>} [query]
 */
export function address(kind, parts = [], query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") {
      search.set(name, value);
    }
  }
  const state = search.size > 0 ? "?" + search.toString() : "";
  return "#/" + [kind, ...parts].join("/") + state;
}

/** @returns {Route} */
export function current() {
  return parse(window.location.hash);
}

/** Go to an address. @param {string} to */
export function go(to) {
  window.location.hash = to;
}

/**
 * Change the state of this page: a tab, a filter. `replace` makes no step for the browser's back button.
 * @param {Record<string, string | undefined | null>} state
 * @param {{replace?: boolean}} [options]
 */
export function setState(state, { replace = false } = {}) {
  const { kind, parts, query } = current();
  const to = address(kind, parts, { ...query, ...state });
  if (replace) {
    window.history.replaceState(null, "", to);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    go(to);
  }
}
