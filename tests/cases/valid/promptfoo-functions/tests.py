def generate():
    for_word = "{{ word | upper }} FOR ECHO AS MINE"
    return [{"vars": {"word": word}, "assert": [{"type": "equals", "value": for_word}]} for word in ("one", "two")]
