def answer(prompt):
    return "from the root"
