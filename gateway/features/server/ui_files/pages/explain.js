// SPDX-License-Identifier: Apache-2.0
// Find the object to ask about: the question itself is a part of each object's page.

import { html } from "lit";

import { Page } from "../core/page.js";
import { title } from "../parts/heading.js";

export default class ExplainPage extends Page {
  body() {
    return html`${title("Why, and who can", "Open an object from the tree or by the search (key “/”), and choose “Why” there.")}`;
  }
}
