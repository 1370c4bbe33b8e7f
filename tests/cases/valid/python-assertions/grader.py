def polite(output):
    return "Hello" in output


def rude(output):
    return "bye" in output
