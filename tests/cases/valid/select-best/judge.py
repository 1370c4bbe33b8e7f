import json
import re

ANSWER = re.compile(r"<answer-([0-9a-f]{8})-([0-9a-f]+)>\n(.*?)\n</answer-\1-\2>", re.DOTALL)


def longest(prompt):
    answers = ANSWER.findall(prompt)
    best = max(answers, key=lambda found: len(found[2]))
    return json.dumps({"reason": f"one of {len(answers)}", "best": best[0]})


def first(prompt):
    return json.dumps({"best": ANSWER.findall(prompt)[0][0]})


def echo(prompt):
    return prompt
