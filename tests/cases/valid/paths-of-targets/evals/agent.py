def answer(prompt):
    return "from the suite"
