def cases(
    return []
