from agentv.app.authored.validate import Validation


def validate(paths, env, **options):
    """Return the diagnostics of files, sorted by file and position."""
    found = (one for checked in Validation(paths, env, **options) for one in checked.diagnostics)
    return tuple(sorted(found, key=lambda one: one.order))
