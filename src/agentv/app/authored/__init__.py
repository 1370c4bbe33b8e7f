"""Commands on authored files: validate, fix and convert."""
