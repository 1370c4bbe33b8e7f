from pathlib import Path

if Path("VERSION").read_text().strip() != "2.0":
    raise SystemExit("VERSION is not 2.0")
