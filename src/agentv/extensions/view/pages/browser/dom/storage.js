// What the browser keeps of this page: how answers are shown, and the theme.

export function store(name, value) {
  try {
    localStorage.setItem(`agentv-${name}`, value);
  } catch {
    // pages of files may not be allowed to keep anything
  }
}

export function stored(name) {
  try {
    return localStorage.getItem(`agentv-${name}`);
  } catch {
    return null;
  }
}
