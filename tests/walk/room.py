"""A newcomer's machine: a chroot of Debian as root, else this machine with an empty home."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Protocol

PACKAGES = "python3,python3-venv,curl,ca-certificates"
RELEASE, MIRROR = "bookworm", "http://deb.debian.org/debian"
FROM_HERE = (
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/pip.conf",
    "/etc/ssl/certs/ca-certificates.crt",
)
"""What a container gets of its host: the network, and where packages come from."""

PASSED = ("PIP_CERT", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "SSL_CERT_FILE", "https_proxy")
PATHS = "/root/.local/bin", "/root/env/bin", "/root/tools/bin", "/usr/bin", "/bin"
PATIENCE_S = 600


class Failed(Exception):
    """A command that a reader would type failed, or never printed what it should."""


class Room(Protocol):
    """A place where commands are typed."""

    kind: str
    home: Path
    """The reader's folder, as this process sees it."""

    def enter(self, line: str) -> list[str]:
        """Return the command that runs a line there."""
        ...


def _name_variables(home: str) -> list[str]:
    """Return the environment of a reader; uv finds the wheel as on a package index."""
    path = ":".join(each.replace("/root", home, 1) for each in PATHS)
    return [f"HOME={home}", f"PATH={path}", "LANG=C.UTF-8", f"UV_FIND_LINKS={home}/dist"]


class Debian:
    """A bare Debian below a folder."""

    kind = f"Debian {RELEASE}, by debootstrap and chroot"

    def __init__(self, root: Path) -> None:
        """Install Debian into a folder; that needs its package mirror."""
        self.root, self.home = root, root / "root"
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE]
        done = subprocess.run(
            [*command, str(root), MIRROR], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Failed(f"debootstrap: {done.stdout[-500:]}{done.stderr}")
        for path in map(Path, FROM_HERE):
            if path.exists():
                shutil.copy(path, root / path.relative_to("/"))

    def enter(self, line: str) -> list[str]:
        """Return the command that runs a line there, as root, in the home folder."""
        passed = [f"{name}={os.environ[name]}" for name in PASSED if name in os.environ]
        own = [*_name_variables("/root"), *passed]
        memory = self.root / "dev" / "shm"
        shared = f"mkdir -p {memory} && mount -t tmpfs tmpfs {memory}"
        inside = ["chroot", str(self.root), "/usr/bin/env", "-i", "-C", "/root", *own]
        return [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
            *(f"--mount-proc={self.root}/proc", "sh", "-c", f'{shared} && exec "$@"', "sh"),
            *(*inside, "bash", "-euc", line),
        ]


class Here:
    """This machine with an empty home."""

    kind = "this machine with an empty home and the PATH of the system"

    def __init__(self, home: Path) -> None:
        """Create the home."""
        self.home = home
        home.mkdir(parents=True)

    def enter(self, line: str) -> list[str]:
        """Return the command that runs a line there."""
        passed = [f"{name}={os.environ[name]}" for name in PASSED if name in os.environ]
        own = [*_name_variables(str(self.home)), *passed]
        return ["env", "-i", "-C", str(self.home), *own, "bash", "-euc", line]


def open_room(folder: Path) -> Room:
    """Return the barest room that this user can have on this machine."""
    if os.geteuid() == 0 and shutil.which("debootstrap") and shutil.which("unshare"):
        return Debian(folder / "debian")
    return Here(folder / "home")


def run(room: Room, line: str) -> str:
    """Type a line and return what it prints."""
    done = subprocess.run(
        room.enter(line), capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    if done.returncode:
        raise Failed(f"{line}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Server:
    """A background command, with its output so far."""

    def __init__(self, room: Room, line: str, awaited: str) -> None:
        """Type a line and wait until it has printed some text."""
        self._log = room.home / "server.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                room.enter(line), stdout=log, stderr=log, start_new_session=True
            )
        until_s = time.monotonic() + PATIENCE_S
        while awaited not in self.printed:
            if self._process.poll() is not None or time.monotonic() > until_s:
                self.stop()
                raise Failed(f"{line}: ended without {awaited!r}\n{self.printed}")
            time.sleep(0.2)

    @property
    def printed(self) -> str:
        """What it printed."""
        return self._log.read_text(encoding="utf-8")

    def stop(self) -> None:
        """End it and all its descendants."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(60)
