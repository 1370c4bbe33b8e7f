"""A real PostgreSQL for the test session, on a Unix socket in its own directory, with a database for each test."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import psycopg

from needs import postgresql, require


class PostgresServer:
    """A server that accepts only this machine's user; `stop` and `start` may be repeated."""

    def __init__(self, directory: Path, bin_directory: Path) -> None:
        self.directory = directory
        self._bin = bin_directory
        self._user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(directory, "postgres", "postgres")
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "agentv", "--no-sync", "-E", "UTF8", "--locale=C")

    @property
    def _data(self) -> str:
        return str(self.directory / "data")

    def start(self) -> None:
        options = f"-k {self.directory} -c listen_addresses='' -c fsync=off -c full_page_writes=off"
        log = str(self.directory / "log")
        self._run("pg_ctl", "-D", self._data, "-w", "-s", "-o", options, "-l", log, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-w", "-s", "-m", "immediate", "stop")

    def address(self, database: str) -> str:
        return f"postgresql://agentv@/{database}?host={self.directory}"

    def new_database(self) -> str:
        name = f"test_{uuid4().hex}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" STRATEGY wal_log')
        return self.address(name)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), *arguments]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.directory)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    require("postgresql")
    found = postgresql()
    assert found is not None
    with tempfile.TemporaryDirectory(prefix="agentv-pg-", ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o755)
        server = PostgresServer(Path(directory), found)
        server.start()
        try:
            yield server
        finally:
            with suppress(subprocess.CalledProcessError):  # a test may have stopped it
                server.stop()
