"""Users' assertions in TypeScript and JavaScript: the process that runs them, and the module that they import."""
