raise SystemExit("none of this is run")


def strict(output):
    return output


def asking(output, candidat_answer, *, verbose=False):
    return output + candidat_answer
