// Templates of elements: htm's, bound to Preact's.

import htm from "htm";
import { h } from "preact";

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);
