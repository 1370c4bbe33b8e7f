from __future__ import annotations

import subprocess
import sys

THREADS = """
import sys
from threading import Barrier, Thread
from typing import Optional

import msgspec

from agentv.store.files.encoding import decodable

sys.setswitchinterval(1e-6)
for turn in range(40):
    inner = [
        msgspec.defstruct(f"Inner{number}", [(f"field{one}", Optional[int], None) for one in range(40)])
        for number in range(20)
    ]
    outer = msgspec.defstruct("Outer", [(kind.__name__, Optional[kind], None) for kind in inner])
    text = ("{" + ",".join(f'"{kind.__name__}":{{"field1":1}}' for kind in inner) + "}").encode()
    together = Barrier(6)
    found = []

    def decode():
        together.wait()
        found.append(msgspec.json.decode(text, type=KIND))

    threads = [Thread(target=decode) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [one.Inner7.field1 for one in found] == [1] * 6, turn
"""


def test_threads_that_decode_into_one_type_for_the_first_time_do_not_crash():
    script = THREADS.replace("KIND", "decodable(outer)")
    ended = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
