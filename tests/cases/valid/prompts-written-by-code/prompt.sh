echo "Does it greet?"
python3 -c 'import json, sys; print(json.load(sys.stdin)["output"])'
