def f(prompt):
    return prompt
