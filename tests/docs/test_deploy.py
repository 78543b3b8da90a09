"""The files on the page about deployment are accepted by systemd, nginx and Compose, and start the server."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.docs.commands import parse_command
from tests.docs.console import fences

PAGE = Path(__file__).parent.parent.parent / "docs" / "serving.md"
PROGRAM = "/opt/manyheads/.venv/bin/manyheads"
# Keys of a service in the Compose specification that the page may use.
SERVICE = {
    "build", "command", "healthcheck", "image", "ports", "restart", "stop_grace_period", "user", "volumes",
}  # fmt: skip


def block(language: str, beginning: str = "") -> str:
    """Return the only block of a language with this beginning."""
    (found,) = [
        fence.text for fence in fences(PAGE) if fence.language == language and fence.text.startswith(beginning)
    ]
    return found


def serve_settings(line: str) -> dict[str, Any]:
    """Return the options of a command line that starts the server; errors of click are raised."""
    words = shlex.split(line)
    assert words[0] == "serve"
    return dict(parse_command(words).params)


def test_the_unit_starts_a_server_that_is_reachable_through_a_proxy_only() -> None:
    line = re.search(rf"^ExecStart={PROGRAM} (.*)$", block("ini", "[Unit]"), re.MULTILINE)
    assert line is not None
    settings = serve_settings(line[1])
    assert settings["trust_forwarded_for"]
    assert "--host " not in line[1]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "manyheads.service"
    unit.write_text(block("ini", "[Unit]").replace(PROGRAM, sys.executable), encoding="utf-8")
    assert not systemd_messages(unit)
    unit.write_text(unit.read_text().replace("DynamicUser=yes", "DynamicUsers=yes"), encoding="utf-8")
    assert "DynamicUsers" in systemd_messages(unit)


def systemd_messages(unit: Path) -> str:
    """Return the messages of systemd about a unit."""
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "".join(line for line in done.stderr.splitlines(True) if unit.name in line or str(unit) in line)


def test_compose_starts_a_server_that_reads_the_keys() -> None:
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load(block("yaml"))
    assert set(content) == {"services", "volumes"}
    service = content["services"]["translate"]
    assert set(service) <= SERVICE
    settings = serve_settings(service["command"])
    assert settings["host"] == "0.0.0.0"
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    named = {volume.split(":")[0] for volume in service["volumes"] if not volume.startswith((".", "/"))}
    assert named == set(content["volumes"])
    compile(service["healthcheck"]["test"][-1], "healthcheck", "exec")


@pytest.mark.skipif(shutil.which("nginx") is None, reason="there is no nginx")
def test_nginx_accepts_the_site(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=translate.example.org",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    site = re.sub(r"/etc/\S+fullchain\.pem", str(certificate), block("nginx"))
    site = re.sub(r"/etc/\S+privkey\.pem", str(key), site)
    site = re.sub(r"(listen (?:\[::\]:)?)80;", r"\g<1>8080;", site)
    site = re.sub(r"(listen (?:\[::\]:)?)443 ssl;", r"\g<1>8443 ssl;", site)
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\n{site}}}\n", encoding="utf-8")
    command = ["nginx", "-t", "-p", str(tmp_path), "-c", str(whole)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_site_forwards_the_headers_that_the_server_needs() -> None:
    site = block("nginx")
    assert site.count("{") == site.count("}") == 4
    assert "proxy_set_header Host $host;" in site
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in site
