"""A local Ray cluster of two nodes in a process of its own, which isolates Ray's threads and warnings.

As a program, it prints the address and obeys commands on stdin: `kill` ends the second node without a warning, `add`
starts another one; it answers `done`. At the end of stdin it shuts everything down.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CPUS = 1
STORE = 80 * 1024 * 1024
SOON = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 2}


class TwoNodes:
    """Client of the cluster process."""

    def __init__(self) -> None:
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.address = self._line()
        self._place = Path(self._line())

    def tell(self, word: str) -> None:
        """Send `kill` or `add` to the cluster and wait for its reply."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        assert self._line() == "done"

    @property
    def files(self) -> list[Path]:
        """All files written by Ray."""
        return [path for path in self._place.rglob("*") if path.is_file()]

    def end(self) -> None:
        self._process.communicate(timeout=120)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def main() -> None:
    """Run the cluster and obey commands."""
    reply = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keep Ray's own output apart from the replies

    def say(text: str) -> None:
        print(text, file=reply, flush=True)

    place = tempfile.mkdtemp(prefix="agentv-ray-")  # Ray's socket paths must be short
    Path(place, "ray").mkdir()  # Ray writes the last cluster's address here but does not create the directory
    os.environ["RAY_TMPDIR"] = place

    from ray.cluster_utils import Cluster

    size = {"num_cpus": CPUS, "object_store_memory": STORE}
    head = {**size, "include_dashboard": False, "temp_dir": place, "_system_config": SOON}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    second = cluster.add_node(**size)
    say(cluster.address)
    say(place)
    for line in sys.stdin:
        if line.strip() == "kill":
            cluster.remove_node(second, allow_graceful=False)
        else:
            second = cluster.add_node(**size)
        say("done")
    cluster.shutdown()
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
