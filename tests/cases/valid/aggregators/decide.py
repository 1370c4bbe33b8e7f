import json
import sys

payload = json.load(sys.stdin)
passing = [one for one in payload["results"].values() if one["verdict"] == "pass"]
print(json.dumps({"score": 1.0 if len(passing) >= payload["config"]["most"] else 0.0, "verdict": "pass"}))
