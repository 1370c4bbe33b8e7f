def ask(output
