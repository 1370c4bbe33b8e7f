// The difference between two rates and its interval, on a line from -100 to +100 points.

import { signed } from "../data/numbers.js";
import { at } from "../dom/charts.js";
import { drawing, element } from "../dom/elements.js";
import { inline } from "../dom/text.js";

// The difference and its interval, on a line from -100 to +100 points.
export function differenceDrawing({ measure, delta, interval, level }) {
  const place = (value) => (value + 1) / 2;
  const points = (value) => signed(value * 100, 1);
  const [low, high] = interval;
  return drawing(
    "svg",
    {
      class: "interval",
      role: "img",
      "aria-label": `Difference of the ${measure}: ${points(delta)} points, ${level} CI ${points(low)} to ${points(high)}`,
    },
    drawing("line", { class: "axis", x1: "0%", x2: "100%", y1: "50%", y2: "50%" }),
    drawing("line", { class: "needed", x1: "50%", x2: "50%", y1: "10%", y2: "90%" }),
    drawing("rect", {
      class: "band",
      x: at(place(low)),
      width: at(Math.max((high - low) / 2, 0.002)),
      y: "22%",
      height: "56%",
      rx: 3,
    }),
    drawing("line", { class: "point", x1: at(place(delta)), x2: at(place(delta)), y1: "6%", y2: "94%" }),
  );
}

export function differenceScale() {
  return element(
    "div",
    { class: "scale", "aria-hidden": "true" },
    ["-100", "-50", "0", "+50", ["+100", element("b", { class: "unit" }, " points")]].map((tick) =>
      element("span", {}, tick),
    ),
  );
}

/**
 * What a case takes on both sides of a comparison.
 *
 * @param {string[][]} rows name, before, after, difference, interval
 * @param {string} base @param {string} candidate
 */
export function usageTable(rows, base, candidate) {
  if (!rows?.length) return null;
  return element(
    "div",
    { class: "scrolls taken", tabindex: 0, role: "group", "aria-label": "What a case takes" },
    element(
      "table",
      { class: "bare" },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          ["A case takes", base, candidate, "difference", "confidence"].map((one) =>
            element("th", { scope: "col" }, inline(one)),
          ),
        ),
      ),
      element(
        "tbody",
        {},
        rows.map(([name, ...cells]) =>
          element(
            "tr",
            {},
            element("th", { scope: "row" }, name),
            cells.map((one) => element("td", {}, one)),
          ),
        ),
      ),
    ),
  );
}
