import json


def strict(prompt):
    safe = 0.95 if "Hello" in prompt else 0.85
    return json.dumps({"score": safe if "safe?" in prompt else 0.85})
