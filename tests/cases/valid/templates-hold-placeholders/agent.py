def answer(prompt, vars):
    return f"{vars['customer']} pays {vars['price']}"
