"""The check `fuzzy-match`, as inline Python code of an eval file.

OpenAI evals' FuzzyMatch: one of the two texts contains the other, without case, punctuation, the words a, an and the,
and more than one space.
"""

FUZZY_MATCH = """\
import re
import string

def bare(text):
    letters = "".join(one for one in text.lower() if one not in string.punctuation)
    return " ".join(re.sub(r"\\b(?:a|an|the)\\b", " ", letters).split())

reference = context.expected_output[0].content
references = reference["any_of"] if not isinstance(reference, str) else [reference]
answer = bare(output)
pairs = [(answer, bare(one)) for one in references]
return any(one in other or other in one if one and other else one == other for one, other in pairs)
"""
