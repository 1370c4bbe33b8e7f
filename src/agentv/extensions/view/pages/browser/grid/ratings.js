// What people think of answers: a thumb and a comment, on any of them.

/** @import { Api } from "../data/api.js" */
/** @import { GridCell, GridRow, Rating } from "../data/types.d.ts" */

import { button, drawing, element } from "../dom/elements.js";
import { inline } from "../dom/text.js";

const THUMB = "M5 7l3-5c1 0 1.6.8 1.4 1.8L9 6h3.6c.9 0 1.5.8 1.3 1.7l-1 4.4c-.2.7-.8 1.2-1.5 1.2H5zM2 7h2v6.3H2z";
const COMMENT = "M2 3h12v8H7l-3 3v-3H2z";

export class AnswerRatings {
  /**
   * @param {Api} api
   * @param {string} run
   * @param {boolean} mayRate
   */
  constructor(api, run, mayRate) {
    this.api = api;
    this.run = run;
    this.mayRate = mayRate;
    /** @type {Map<string, Rating[]>} */
    this.by = new Map();
  }

  async load() {
    this.take(await this.api.get(["runs", this.run, "ratings"]));
  }

  /** @param {{ ratings: Rating[] }} told */
  take({ ratings }) {
    this.by = Map.groupBy(ratings, (one) => answerName(one.suite, one.case, one.output_sha256));
  }

  /** @returns {Rating[]} */
  of(row, cell) {
    return this.by.get(answerName(row.suite, row.id, cell.output_sha256)) ?? [];
  }

  mine(row, cell) {
    return this.of(row, cell).find((one) => one.mine);
  }

  /** How many cases have a rated answer. */
  get cases() {
    return new Set([...this.by.values()].flat().map((one) => JSON.stringify([one.suite, one.case]))).size;
  }

  /**
   * @param {GridCell} cell
   * @param {string} thumb
   * @param {string} comment
   */
  async rate(cell, thumb, comment) {
    const said = { key: cell.key, output_sha256: cell.output_sha256 };
    this.take(await this.api.send("POST", ["runs", this.run, "ratings"], { ...said, thumb, comment }));
  }
}

/**
 * The ratings of an answer, and what gives one.
 *
 * @param {AnswerRatings} ratings
 * @param {GridRow} row
 * @param {GridCell} cell
 * @param {{ thumb: (thumb: string) => void, comment: () => void }} does
 */
export function ratingBar(ratings, row, cell, does) {
  if (!cell.output_sha256) return null;
  const given = ratings.of(row, cell);
  const mine = given.find((one) => one.mine);
  if (!given.length && !ratings.mayRate) return null;
  const one = (thumb, label) => {
    const number = given.filter((rating) => rating.thumb === thumb).length;
    const content = [thumbIcon(thumb), number > (mine?.thumb === thumb ? 1 : 0) ? String(number) : null];
    if (!ratings.mayRate) return number ? element("span", { class: `gthumb ${thumb}`, title: label }, content) : null;
    return button(content.filter(Boolean), () => does.thumb(thumb), {
      class: `gthumb ${thumb}`,
      "aria-pressed": String(mine?.thumb === thumb),
      "aria-label": label,
      title: label,
      tabindex: -1,
    });
  };
  const comments = given.filter(({ comment }) => comment);
  const told = comments.map(({ person, comment }) => `${person || "you"}: ${comment}`).join("\n");
  return element(
    "div",
    { class: `grating${given.length ? " given" : ""}` },
    one("up", "Good answer (1)"),
    one("down", "Bad answer (0)"),
    ratings.mayRate || comments.length
      ? button(icon(COMMENT), does.comment, {
          class: `gthumb${comments.length ? " said" : ""}`,
          "aria-label": comments.length ? "Comments" : "Comment (c)",
          title: told || "Comment (c)",
          tabindex: -1,
        })
      : null,
  );
}

/** What people said of an answer. @param {Rating[]} given */
export function commentList(given) {
  const said = given.filter(({ comment, thumb }) => comment || thumb);
  if (!said.length) return null;
  return element(
    "ul",
    { class: "gcomments" },
    said.map(({ person, comment, thumb, mine }) =>
      element(
        "li",
        {},
        thumb ? thumbIcon(thumb) : null,
        " ",
        inline(mine ? "You" : person),
        comment ? [": ", inline(comment)] : null,
      ),
    ),
  );
}

function answerName(suite, id, sha256) {
  return JSON.stringify([suite, id, sha256]);
}

function thumbIcon(thumb) {
  const made = icon(THUMB);
  made.setAttribute("class", `thumb ${thumb}`);
  return made;
}

function icon(path) {
  return drawing("svg", { viewBox: "0 0 16 16", class: "thumb", "aria-hidden": "true" }, drawing("path", { d: path }));
}
