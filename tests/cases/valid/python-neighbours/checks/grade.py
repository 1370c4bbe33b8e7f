import util


def from_checks(output):
    return util.NAME == "checks" and not all([True, False])


def shaped(output):
    return f"{util.NAME} of {output}"
