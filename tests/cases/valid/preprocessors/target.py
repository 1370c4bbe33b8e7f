def answer(case_id: str) -> dict[str, object]:
    """A file for each case, as AgentV's targets answer with one."""
    names = {
        "table": ("table.bin", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        "by-suffix": ("table.xlsx", ""),
        "own": ("table.bin", "xlsx"),
        "text": ("notes.txt", "text/plain"),
        "binary": ("table.bin", "image/x-none"),
        "fails": ("notes.txt", "application/x-fails"),
        "hangs": ("notes.txt", "application/x-hangs"),
        "floods": ("notes.txt", "application/x-floods"),
        "silent": ("notes.txt", "application/x-silent"),
        "not-text": ("notes.txt", "application/x-noise"),
        "missing": ("no.txt", "text/plain"),
        "outside": ("../../../../../../../../etc/passwd", "text/plain"),
        "absolute": ("/etc/passwd", "xlsx"),
        "hidden": (".hidden.txt", "text/plain"),
        "link": ("link.txt", "text/plain"),
    }
    path, kind = names[case_id.partition(":")[0]]
    said = {"type": "text", "text": "Here it is"}
    return {"output": [{"role": "assistant", "content": [said, {"type": "file", "media_type": kind, "path": path}]}]}
