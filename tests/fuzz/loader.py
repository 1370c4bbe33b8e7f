"""Coverage-guided fuzzing of the loader, by hand: whatever the bytes are, it ends, and says what is wrong at its place.

    pip install atheris
    python tests/fuzz/loader.py [-max_total_time=3600] [CORPUS]

An input is the name of a folder of `tests/cases/valid`, a NUL, the path of one of its files, a NUL, and what stands in
that file instead. Every file of those folders is where it begins; what turns out to be new is kept in the directory
CORPUS. What breaks a rule is kept as `crash-…` in the working directory; `python tests/fuzz/loader.py crash-…` repeats it.
"""

import logging
import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from random import Random

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
with atheris.instrument_imports(include=["agentv.authoring", "agentv.templating"]):
    from doubles.loading import repository
    from doubles.mutants import check_told, mutated, projects

PROJECTS = projects()
SCRATCH = Path(tempfile.mkdtemp(prefix="agentv-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
TIME_LIMIT_S = 10
MEMORY_LIMIT_MB = 2048


def one_input(data: bytes) -> None:
    """Load a project with one of its files replaced."""
    name, _, rest = data.partition(b"\0")
    path, _, content = rest.partition(b"\0")
    project = PROJECTS.get(name.decode(errors="replace"))
    if project is None or path.decode(errors="replace") not in project.mutable:
        return
    folder = SCRATCH / name.decode()
    if not folder.exists():
        repository(folder, project.files)
    file = folder / path.decode()
    file.write_bytes(content)
    try:
        with chdir(folder):
            check_told(Path(project.loaded), **project.request)
    finally:
        file.write_bytes(project.files[path.decode()])


def changed(data: bytes, longest: int, seed: int) -> bytes:
    """Another input: the same file, changed by its lines and values half the time, else by its bytes."""
    name, _, rest = data.partition(b"\0")
    path, _, content = rest.partition(b"\0")
    head = name + b"\0" + path + b"\0"
    random = Random(seed)
    room = max(longest - len(head), 1)
    content = mutated(content, random) if random.random() < 0.5 else atheris.Mutate(content, room)
    return head + content[:room]


def seeds(folder: Path) -> None:
    """One input a file."""
    for number, (name, project) in enumerate(PROJECTS.items()):
        for place, path in enumerate(project.mutable):
            (folder / f"{number}-{place}").write_bytes(b"\0".join((name.encode(), path.encode(), project.files[path])))


def main() -> None:
    """Until something breaks, or the time given is over."""
    logging.disable()
    arguments = sys.argv[1:]
    if not any(Path(one).is_file() for one in arguments):
        (SCRATCH / "seeds").mkdir()
        seeds(SCRATCH / "seeds")
        corpus = [one for one in arguments if not one.startswith("-")] or [str(SCRATCH / "corpus")]
        Path(corpus[0]).mkdir(exist_ok=True)  # what is new goes into the first one
        arguments = [*(one for one in arguments if one.startswith("-")), *corpus, str(SCRATCH / "seeds")]
    limits = [
        f"-timeout={TIME_LIMIT_S}",
        f"-rss_limit_mb={MEMORY_LIMIT_MB}",
        "-max_len=20000",
        "-len_control=0",
        f"-artifact_prefix={Path.cwd()}/",
    ]
    atheris.Setup([sys.argv[0], *limits, *arguments], one_input, custom_mutator=changed)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)


if __name__ == "__main__":
    main()
