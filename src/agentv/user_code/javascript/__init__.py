"""Users' functions in TypeScript and JavaScript: the processes that run them, and the module that they import."""
