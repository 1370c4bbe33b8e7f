// What a change proves itself with: a token of the document, or of the address that `agentv view` printed.

import { store, stored } from "../dom/storage.js";

const TOKEN_NAME = "view-token";

/** The token that a server put into the document; empty: none. */
export function tokenOfDocument() {
  return document.querySelector('meta[name="agentv-token"]')?.getAttribute("content") ?? "";
}

/**
 * The tokens to try, the best first. One of the address is taken out of it, so that no bookmark and no copied link
 * contains it. What is stored is only of this host and port, which cookies would not be.
 *
 * @returns {string[]}
 */
export function tokensToTry() {
  const address = new URL(location.href);
  const given = address.searchParams.get("token");
  if (given !== null) {
    address.searchParams.delete("token");
    history.replaceState(null, "", address);
  }
  return [tokenOfDocument(), given, stored(TOKEN_NAME)].filter(Boolean);
}

/** Keep a token that the server took, for reloads and other tabs. */
export function keepToken(token) {
  if (token && token !== tokenOfDocument()) store(TOKEN_NAME, token);
}
