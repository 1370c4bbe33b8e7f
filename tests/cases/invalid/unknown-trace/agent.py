def run(prompt):
    return prompt
