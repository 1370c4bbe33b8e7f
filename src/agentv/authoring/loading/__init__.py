"""Loading of eval files: from paths to suites, or to diagnostics."""
