def min_words():
    return True
