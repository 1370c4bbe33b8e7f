throw new Error('at import');
