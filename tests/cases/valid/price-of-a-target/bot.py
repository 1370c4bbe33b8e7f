def answer(prompt):
    return {"output": prompt, "token_usage": {"input": 1000, "output": 2000, "cached": 500}, "cost_usd": 9}
