import json
import sys

given = json.load(sys.stdin)
assert set(given) == {"path", "original_path", "media_type"}
with open(given["path"], "rb") as file:
    print("revenue", file.read()[0])
