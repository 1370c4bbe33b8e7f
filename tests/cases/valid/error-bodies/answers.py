import json


def reports():
    return {"error": "model overloaded"}


def reports_as_text():
    return json.dumps({"error": {"message": "model overloaded", "code": 503}})


def answers():
    return json.dumps({"error": "none", "order": "A-42"})
