"""eva's exams of prompts, `eval.yml` beside a prompt, as a dialect (SPEC section 11)."""
