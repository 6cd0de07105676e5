// SPDX-License-Identifier: Apache-2.0
// Errors: what was wrong, what the reader can do, and the id for the operator.

import { html, nothing } from "lit";

import { ApiError } from "../core/api.js";
import { NotHere } from "../core/objects.js";
import { address } from "../core/router.js";

/** Draw an error in place of a whole page. @param {unknown} error */
export function pageProblem(error) {
  const missing = error instanceof NotHere || (error instanceof ApiError && error.status === 404);
  return html`<h1>${missing ? "Not found" : "This page cannot be shown"}</h1>
    ${problem(error)}
    <p><a href="#/">Home</a></p>`;
}

/** Draw an error. @param {unknown} error */
export function problem(error) {
  const text = error instanceof Error ? error.message : String(error);
  const expected = error instanceof ApiError || error instanceof NotHere;
  const denial = error instanceof ApiError ? error.denial : null;
  const id = error instanceof ApiError ? error.id : null;
  return html`<div class="problem" role="alert">
    <p>${expected ? text : "This page has an error: " + text}</p>
    ${denial === null ? nothing : html`<p><a class="button" href=${address("denial", [denial])}>Why, and request access</a></p>`}
    ${id === null ? nothing : html`<p class="quiet">Request id <code>${id}</code></p>`}
  </div>`;
}
