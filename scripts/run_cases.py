#!/usr/bin/env python3
"""Runs the case tables of tests/ against the coil command.

    fixtures  tests/fixtures/VERSION/NAME.pt2: `coil run` with the .npz beside it, on every target and
              instruction set at hand; the newest version also goes through `coil check`
    run       tests/run/*.graph and *.pt2: `coil check`; with an .npz beside it also `coil run --expect`
    golden    tests/golden/*.txt: transcripts of what coil prints on stdout
    error     tests/error/*.txt: transcripts of what coil prints on stderr
    docs      the ```console blocks of docs/*.md, transcripts of stdout

A transcript is rows of this form; lines outside rows are comments:

    << bad.graph                        (optional: a file for this row, up to a line `<<`)
    graph g {
    <<
    $ COIL_CXX=/none coil run bad.graph
    error: bad.graph:2: expected '}', found the end of the file
    [exit 2]

Golden rows and docs run in the root of the repository. Error rows run in an empty folder of their own
and may leave nothing there; {inputs}, {fixtures} and {root} stand for folders: tests/error/make_inputs.py
FOLDER, if it exists, fills {inputs} with bad files. BLESS=1 rewrites transcripts with what coil says now.

The first lines of a tests/run text, or of a .txt beside a .pt2, may state `# args: ...` for
`coil check`, and `# undecided: N`.
"""

import argparse
import concurrent.futures
import dataclasses
import difflib
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
WORK = ROOT / "build" / "cases"
TIMEOUT_S = 300


@dataclasses.dataclass
class Outcome:
    status: str  # passed, failed or skipped
    detail: str = ""


@dataclasses.dataclass
class Case:
    group: str
    name: str
    run: object  # () -> Outcome


def passed():
    return Outcome("passed")


def failed(detail):
    return Outcome("failed", detail)


# --- Running coil


@dataclasses.dataclass
class Ran:
    code: int
    stdout: str
    stderr: str

    def text(self):
        return f"exit {self.code}\n{self.stdout}{self.stderr}"


class Coil:
    """The command under test, in an environment that does not depend on the caller's."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self, arguments, cwd=ROOT, env=()):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("COIL_")}
        environment.update(COIL_CACHE_DIR=str(WORK / "cache"), LC_ALL="C.UTF-8", NO_COLOR="1")
        environment.update(env)
        try:
            done = subprocess.run([self.path, *arguments], cwd=cwd, env=environment, timeout=TIMEOUT_S,
                                  stdin=subprocess.DEVNULL, capture_output=True)
        except subprocess.TimeoutExpired:
            return Ran(-1, "", f"no end after {TIMEOUT_S} s\n")
        return Ran(done.returncode, done.stdout.decode(errors="replace"),
                   done.stderr.decode(errors="replace"))


def host_isas():
    """What `-O isa=` can be on this machine."""
    if platform.machine() in ("aarch64", "arm64"):
        return {"plain", "neon"}
    try:
        flags = set(re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(),
                              re.MULTILINE).group(1).split())
    except (OSError, AttributeError):
        return {"plain"}
    isas = {"plain"}
    if {"avx2", "fma", "f16c"} <= flags:
        isas.add("avx2")
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= flags:
        isas.add("avx512")
    return isas


def missing_isa(arguments):
    """The instruction set that the arguments ask for and this machine lacks, or None."""
    for word in arguments:
        match = re.fullmatch(r"(?:-O)?isa=(\w+)", word)
        if match and match.group(1) not in host_isas() | {"native"}:
            return match.group(1)
    return None


# --- Fixtures and programs


def expected_arrays(npz):
    """How many output arrays the file holds, over all calls."""
    with zipfile.ZipFile(npz) as archive:
        return sum(bool(re.match(r"out\d", name)) for name in archive.namelist())


def run_against_npz(coil, model, npz, options):
    isa = missing_isa(options)
    if isa:
        return Outcome("skipped", f"this machine has no {isa}")
    arguments = ["run", str(model), "--inputs", str(npz), "--expect", str(npz), *options]
    ran = coil(arguments)
    if ran.code != 0:
        return failed(ran.text())
    count = expected_arrays(npz)
    # coil says how many arrays it compared; this holds it to comparing all.
    if not re.search(rf"\b{count} arrays?\b", ran.stdout):
        return failed(f"should have compared {count} arrays\n{ran.text()}")
    return passed()


def check_program(coil, model, options, undecided=0):
    isa = missing_isa(options)
    if isa:
        return Outcome("skipped", f"this machine has no {isa}")
    ran = coil(["check", str(model), *options])
    if ran.code != 0:
        return failed(ran.text())
    match = re.search(r"\b(\d+) undecided", ran.stdout)
    found = int(match.group(1)) if match else 0
    if found != undecided:
        return failed(f"{found} undecided outputs, expected {undecided}\n{ran.text()}")
    return passed()


def target_options():
    isas = ("neon", "plain") if "neon" in host_isas() else ("avx2", "plain")
    yield ["--target", "interp"]
    yield ["--target", "cpp"]
    for isa in isas:
        yield ["--target", "cpp", "-O", f"isa={isa}"]


def version_key(folder):
    return [int(part) for part in re.findall(r"\d+", folder.name)]


def fixture_cases(coil):
    versions = sorted((p for p in (TESTS / "fixtures").glob("*") if p.is_dir()), key=version_key)
    for version in versions:
        for model in sorted(version.glob("*.pt2")):
            npz = model.with_suffix(".npz")
            name = f"{version.name}/{model.stem}"
            for options in target_options():
                yield Case("fixtures", f"{name} {' '.join(options[1:])}",
                           lambda m=model, n=npz, o=options: run_against_npz(coil, m, n, o))
            if version == versions[-1]:
                yield Case("fixtures", f"{name} check",
                           lambda m=model, n=npz: check_program(coil, m, ["--inputs", str(n)]))


def directive(model, key):
    """The value of a `# key: value` line at the top of a text program, or of the .txt beside a .pt2."""
    if model.suffix == ".pt2":
        model = model.with_suffix(".txt")
        if not model.is_file():
            return ""
    for line in model.read_text().splitlines():
        if not line.startswith("#"):
            break
        match = re.match(rf"#\s*{key}:\s*(.*)$", line)
        if match:
            return match.group(1).strip()
    return ""


def run_cases(coil):
    folder = TESTS / "run"
    for model in sorted([*folder.rglob("*.graph"), *folder.rglob("*.pt2")]):
        name = model.relative_to(folder).as_posix()
        npz = model.with_suffix(".npz")
        options = shlex.split(directive(model, "args"))
        undecided = int(directive(model, "undecided") or 0)
        if npz.is_file():
            for target in target_options():
                yield Case("run", f"{name} {' '.join(target[1:])}",
                           lambda m=model, n=npz, o=target: run_against_npz(coil, m, n, o))
            options = ["--inputs", str(npz), *options]
        yield Case("run", f"{name} check",
                   lambda m=model, o=options, u=undecided: check_program(coil, m, o, u))


# --- Transcripts


@dataclasses.dataclass
class Row:
    line: int  # of the `$`, from 1
    command: str
    files: dict
    expected: str
    code: int
    start: int  # first and one past the last line of the expected text, from 0
    end: int


def parse_transcript(path):
    lines = path.read_text().split("\n")
    rows, files, at = [], {}, 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("<< "):
            end = lines.index("<<", at)
            files[line[3:].strip()] = "\n".join(lines[at + 1:end]) + "\n"
            at = end + 1
            continue
        if not line.startswith("$ "):
            at += 1
            continue
        end = at + 1
        while end < len(lines) and not re.fullmatch(r"\[exit \d+\]", lines[end]):
            if lines[end].startswith("$ "):
                sys.exit(f"{path}:{at + 1}: the row has no [exit N] line")
            end += 1
        if end == len(lines):
            sys.exit(f"{path}:{at + 1}: the row has no [exit N] line")
        text = "".join(text + "\n" for text in lines[at + 1:end])
        code = int(re.search(r"\d+", lines[end]).group())
        rows.append(Row(at + 1, line[2:], files, text, code, at + 1, end + 1))
        files, at = {}, end + 1
    return rows


def parse_page(path):
    """Rows of the ```console blocks of a Markdown page. Each must exit 0."""
    lines = path.read_text().split("\n")
    rows, at = [], 0
    while at < len(lines):
        if lines[at] != "```console":
            at += 1
            continue
        end = lines.index("```", at)
        text = "".join(text + "\n" for text in lines[at + 2:end])
        if lines[at + 1].startswith("$ "):
            rows.append(Row(at + 2, lines[at + 1][2:], {}, text, 0, at + 2, end))
        at = end + 1
    return rows


def split_command(command, path):
    """(environment, arguments) of `NAME=value ... coil arguments`."""
    words = shlex.split(command)
    env = {}
    while words and re.match(r"^[A-Z_]+=", words[0]):
        key, value = words.pop(0).split("=", 1)
        env[key] = value
    if not words or words[0] not in ("coil", "build/coil"):
        sys.exit(f"{path}: a row runs coil, not: {command}")
    return env, words[1:]


class Transcript:
    """One file of rows. Blessing replaces the expected text of rows after all have run."""

    def __init__(self, path, rows, stream, folders, ends_with_exit=True):
        self.path = path
        self.rows = rows
        self.stream = stream
        self.folders = folders
        self.ends_with_exit = ends_with_exit
        self.blessed = {}

    def expand(self, text):
        for name, folder in self.folders.items():
            text = text.replace("{" + name + "}", str(folder))
        return text

    def contract(self, text):
        for name, folder in self.folders.items():
            text = text.replace(str(folder), "{" + name + "}")
        return text

    def run_row(self, coil, row):
        env, arguments = split_command(self.expand(row.command), f"{self.path}:{row.line}")
        isa = missing_isa(arguments)
        if isa:
            return Outcome("skipped", f"this machine has no {isa}")
        if self.stream == "stdout":
            return self.compare(row, coil(arguments, env=env), [])
        WORK.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=WORK) as folder:
            for name, text in row.files.items():
                (pathlib.Path(folder) / name).write_text(text)
            ran = coil(arguments, cwd=folder, env=env)
            left = sorted(set(os.listdir(folder)) - set(row.files))
        return self.compare(row, ran, left)

    def compare(self, row, ran, left):
        actual = self.contract(getattr(ran, self.stream))
        if actual and not actual.endswith("\n"):
            actual += "\n"
        if left:
            return failed(f"{row.command}\nleft files behind: {', '.join(left)}")
        if not 0 <= ran.code <= 2:
            return failed(f"{row.command}\n{ran.text()}")
        if actual == row.expected and ran.code == row.code:
            return passed()
        if os.environ.get("BLESS") == "1":
            self.blessed[row.line] = (actual, ran.code)
            return Outcome("passed", "blessed")
        diff = difflib.unified_diff(row.expected.splitlines(), actual.splitlines(), "expected", "found",
                                    lineterm="")
        other = ran.stderr if self.stream == "stdout" else ran.stdout
        return failed("\n".join([f"$ {row.command}", f"exit {ran.code}, expected {row.code}", *diff,
                                 other if ran.code != row.code else ""]))

    def write_blessed(self):
        if not self.blessed:
            return
        lines = self.path.read_text().split("\n")
        for row in reversed(self.rows):
            if row.line not in self.blessed:
                continue
            text, code = self.blessed[row.line]
            fresh = text.split("\n")[:-1]
            if self.ends_with_exit:
                fresh.append(f"[exit {code}]")
            lines[row.start:row.end] = fresh
        self.path.write_text("\n".join(lines))
        print(f"[cases] blessed {len(self.blessed)} rows of {self.path.relative_to(ROOT)}")


def make_error_inputs():
    script = TESTS / "error" / "make_inputs.py"
    folder = WORK / "inputs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if script.is_file():
        subprocess.run([sys.executable, str(script), str(folder)], check=True, stdin=subprocess.DEVNULL)
    return folder


def load_transcripts():
    folders = {
        "inputs": make_error_inputs(),
        "fixtures": TESTS / "fixtures" / "2.15.0",
        "root": ROOT,
    }
    for path in sorted((TESTS / "error").glob("*.txt")):
        yield "error", Transcript(path, parse_transcript(path), "stderr", folders)
    for path in sorted((TESTS / "golden").rglob("*.txt")):
        yield "golden", Transcript(path, parse_transcript(path), "stdout", {"root": ROOT})
    for page in sorted((ROOT / "docs").glob("*.md")):
        yield "docs", Transcript(page, parse_page(page), "stdout", {"root": ROOT}, ends_with_exit=False)


def transcript_cases(coil, transcripts):
    for group, transcript in transcripts:
        for row in transcript.rows:
            yield Case(group, f"{transcript.path.name}:{row.line} {row.command}",
                       lambda t=transcript, r=row: t.run_row(coil, r))


# --- The runner


def run_all(cases, jobs):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    started = shown = time.monotonic()

    def safely(case):
        try:
            return case.run()
        except Exception as problem:  # one broken case must not hide the others
            return failed(f"{type(problem).__name__}: {problem}")

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(safely, case): case for case in cases}
        for future in concurrent.futures.as_completed(futures):
            case, outcome = futures[future], future.result()
            counts[outcome.status] += 1
            if outcome.status == "failed":
                detail = "\n".join("    " + line for line in outcome.detail.splitlines()[:40])
                print(f"[cases] FAILED {case.group}: {case.name}\n{detail}", flush=True)
            now = time.monotonic()
            if now - shown > 10:
                shown = now
                print(f"[cases] {sum(counts.values())} of {len(cases)} done, {counts['failed']} failed, "
                      f"{now - started:.0f} s", flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description="Runs the case tables of tests/.",
                                     epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coil", default=str(ROOT / "build" / "coil"), help="the command under test")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="print the cases instead of running them")
    parser.add_argument("words", nargs="*", help="only cases whose group and name hold all these words")
    options = parser.parse_args()

    coil_path = pathlib.Path(options.coil).resolve()
    if not options.list and not os.access(coil_path, os.X_OK):
        print(f"[cases] {coil_path} is not there; `make build` makes build/coil", file=sys.stderr)
        return 2
    coil = Coil(coil_path)
    transcripts = list(load_transcripts())
    cases = [*transcript_cases(coil, transcripts), *run_cases(coil), *fixture_cases(coil)]
    cases = [c for c in cases if all(word in f"{c.group} {c.name}" for word in options.words)]
    if options.list:
        for case in cases:
            print(f"{case.group}: {case.name}")
        return 0
    groups = sorted({case.group for case in cases})
    print("[cases] " + ", ".join(f"{sum(c.group == g for c in cases)} {g}" for g in groups), flush=True)
    counts = run_all(cases, max(1, options.jobs))
    for _, transcript in transcripts:
        transcript.write_blessed()
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
