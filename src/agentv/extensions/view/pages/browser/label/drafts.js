// Notes that were typed and are not saved yet: this tab keeps them, also if the page is loaded again.

const PREFIX = "agentv-note-";

export function draftOf(id) {
  try {
    return sessionStorage.getItem(PREFIX + id);
  } catch {
    return null;
  }
}

export function keepDraft(id, note) {
  try {
    if (note === null) sessionStorage.removeItem(PREFIX + id);
    else sessionStorage.setItem(PREFIX + id, note);
  } catch {
    // the note stays in its field
  }
}
