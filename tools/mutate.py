"""Mutation testing of csrc: puts small faults into the C library, one at a time, and runs its tests.

    nice python tools/mutate.py [--sample 600] [--seed 1] [--files 'kc_table*'] [--again [--sanitizers]] [--list]

A mutant has one comparison, sum, constant, condition or statement changed. It is killed if a unit test, a golden file
or the replay of a fuzz target fails or times out. A survivor is compiled with optimisation: if its object file equals
the original's, the mutant is equivalent. Equivalent mutants and those that do not compile are not counted. `--again
--sanitizers` tries the other survivors under sanitizers, as in `make test`.

Results are kept by the text of the changed line, one JSON object per line, so that a second run tests only new mutants;
`--again` also tests the survivors, for example after a test was added; `--list` prints them. Run one process at a time,
after `make ctest`, which makes the golden cases.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"
WORK = ROOT / ".cache" / "mutation"
CASES = ROOT / ".cache" / "golden-cases"
BLOBS = [ROOT / "tests" / "data" / "kafka" / "blobs" / kind for kind in ("corrupt", "foreign", "cut")]
SHARED = ["fuzz/replay", "fuzz/codecs", "fuzz/seal"]  # linked into the programs of the fuzz targets
CPU_SECONDS, SECONDS = 5, 300  # ten times the slowest program
SANITIZED_CPU_SECONDS = 20
# Code for another processor; constants that a test derives one by one; layouts that Arrow defines.
LEFT_OUT = ("kc_crc_arm.c", "kc_crc_table.c", "kc_arrow_abi.h")

# tests/test_no_memory.c replaces the system's allocator.
WRAPPED = ["-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free"]

QUICK = ["-O0", "-w"]
OPTIMISED = ["-O2", "-w"]
SANITIZED = ["-O1", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


@dataclass(frozen=True)
class Mutant:
    """A line of a file and its replacement."""

    file: str
    line: int
    kind: str
    before: str
    after: str

    @property
    def key(self) -> str:
        """Identifies the mutant even if lines move."""
        return f"{self.file}|{self.before}|{self.after}"


# ---- making mutants --------------------------------------------------------------------------------------------------

SWAPS = {
    "comparison": {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="]},
    "logic": {"&&": ["||"], "||": ["&&"]},
    "sum": {"+": ["-"], "-": ["+"], "+=": ["-="], "-=": ["+="]},
}
TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<comment>//.*|/\*.*?\*/)"""
    r"""|(?P<number>\b(?:0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*\b)|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<operator>->|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|\+=|-=|[-+*/%&|^~!<>=?:;,.()\[\]{}])"""
)
STATEMENT = re.compile(r"^(?P<indent>\s+)(?P<body>[A-Za-z_*(][^{}]*;)(?P<rest>\s*(?:/\*.*\*/)?)$")
DECLARATION = re.compile(
    r"^(?:const|static|struct|enum|union|typedef|unsigned|int|bool|char|void|double|size_t|u?int\d+_t) "
    r"|^kc_\w+ \*?\w+(?: =|;|,)|^\w+ \*?\w+ = "
)


def code_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines of code with their numbers, without comments, preprocessor directives and empty lines."""
    comment = directive = False
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        skip = comment or directive or bare.startswith(("#", "/*"))
        if bare.startswith("/*") or comment:
            comment = "*/" not in bare
        directive = (bare.startswith("#") or directive) and bare.endswith("\\")
        if not skip and bare:
            yield number, line


def is_unary(tokens: list[re.Match[str]], i: int) -> bool:
    """Whether the sign at token i has no operand on its left."""
    if i == 0:
        return True
    before = tokens[i - 1]
    is_operator = before.lastgroup == "operator" and before.group() not in (")", "]")
    return is_operator or before.group() in ("return", "case")


def token_mutants(line: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each line that differs in one operator or number."""
    tokens = list(TOKEN.finditer(line))
    for i, token in enumerate(tokens):
        text = token.group()
        for kind, swaps in SWAPS.items():
            if token.lastgroup == "operator" and text in swaps and not (kind == "sum" and is_unary(tokens, i)):
                for other in swaps[text]:
                    yield kind, line[: token.start()] + other + line[token.end() :]
        if token.lastgroup == "number":
            digits = text.rstrip("uUlL")
            value, suffix = int(digits, 0), text[len(digits) :]
            for changed in (value + 1, value - 1) if value else (1,):
                yield "constant", line[: token.start()] + str(changed) + suffix + line[token.end() :]


def balanced(text: str) -> bool:
    """Whether the parentheses are balanced."""
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return False
    return depth == 0


def statement_mutants(line: str) -> Iterator[tuple[str, str]]:
    """Kind and text of the line with its condition negated or its statement removed."""
    condition = re.match(r"^(\s*(?:\} else )?(?:if|while) \()", line)
    if condition:
        depth, start = 1, condition.end()
        for end in range(start, len(line)):
            depth += (line[end] == "(") - (line[end] == ")")
            if depth == 0:
                yield "negation", f"{line[:start]}!({line[start:end]}){line[end:]}"
                rest = line[end + 1 :].strip()
                if rest and rest != "{" and rest.endswith(";"):
                    yield "statement", f"{line[: end + 1]} (void)0;"
                break
        return
    statement = STATEMENT.match(line)
    if statement and balanced(statement["body"]) and not DECLARATION.match(statement["body"]):
        body = statement["body"]
        if not body.startswith(("return", "case", "default", "else", "for", "goto")):
            yield "statement", f"{statement['indent']}(void)0;"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    in_function = False
    for number, line in code_lines(path.read_text()):
        if line[0] not in " }":
            in_function = line.rstrip().endswith(("{", ")", ","))
        inside = line.startswith("    ") and in_function
        found = [*token_mutants(line), *(statement_mutants(line) if inside else ())]
        for kind, after in found:
            yield Mutant(path.name, number, kind, line, after)


def source_of(path: Path, csrc: Path) -> str:
    """A source as the build names it: its place in csrc, without the suffix."""
    return path.relative_to(csrc).with_suffix("").as_posix()


def all_mutants(pattern: str) -> list[Mutant]:
    """The mutants of the files whose names match; lines with the same text count once."""
    files = sorted(CSRC.glob("*/kc_*.[ch]"), key=lambda path: path.name)
    paths = [p for p in files if p.name not in LEFT_OUT and fnmatch(p.name, pattern)]
    unique = {m.key: m for path in paths for m in mutants_of(path)}
    return list(unique.values())


# ---- trying them -----------------------------------------------------------------------------------------------------


def run(*command: str | Path, cpu_seconds: int = 60) -> bool:
    """Whether the command succeeds within its CPU time, which does not depend on the load of the machine."""

    def limit_cpu() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))

    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"}
    try:
        done = subprocess.run(
            [str(c) for c in command],
            cwd=WORK,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
            preexec_fn=limit_cpu,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


class DoesNotCompile(Exception):
    """The mutant is not valid C."""


class Build:
    """Objects of all sources with one set of flags (mutants may have others), and the programs linked from them."""

    def __init__(self, name: str, flags: list[str], mutant_flags: list[str], left_out: tuple[str, ...]) -> None:
        self.flags, self.mutant_flags = flags, mutant_flags
        self.cpu_seconds = SANITIZED_CPU_SECONDS if flags is SANITIZED else CPU_SECONDS
        self.originals, self.mutants = WORK / name, WORK / f"{name}-mutants"
        for directory in (self.originals, self.mutants):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
        self.library = [source_of(p, WORK / "csrc") for p in sorted((WORK / "csrc").glob("*/kc_*.c"))]
        self.programs = {k: v for k, v in self.all_programs().items() if k not in left_out}
        self.sources = sorted({*self.library, *(name for parts, _ in self.programs.values() for name in parts)})
        for source in self.sources:
            self.compile(source, flags, self.originals)

    def all_programs(self) -> dict[str, tuple[list[str], list[str | Path]]]:
        """The objects of each program besides the library, and its arguments; the cheapest first."""
        tests = [f"tests/{p.stem}" for p in sorted((WORK / "csrc/tests").glob("*.c"))]
        programs: dict[str, tuple[list[str], list[str | Path]]] = {
            "unit_tests": (tests, []),
            "golden": ([f"golden/{p.stem}" for p in sorted((WORK / "csrc/golden").glob("*.c"))], [CASES]),
        }
        for path in sorted((WORK / "csrc/fuzz").glob("fuzz_*.c")):
            if path.stem == "fuzz_changing":
                continue  # has its own build
            files: list[str | Path] = [CSRC / "fuzz" / "corpus" / path.stem.removeprefix("fuzz_")]
            files += BLOBS if path.stem in ("fuzz_decode", "fuzz_scan") else []
            programs[path.stem] = ([f"fuzz/{path.stem}", *SHARED], files)
        return programs

    def compile(self, source: str, flags: list[str], directory: Path) -> Path:
        """The object file."""
        target = directory / f"{source.replace('/', '-')}.o"
        command: list[str | Path] = [
            "gcc",
            "-std=c11",
            "-D_GNU_SOURCE",
            "-Icsrc",
            *flags,
            "-c",
            f"csrc/{source}.c",
            "-o",
            target,
        ]
        if not run(*command):
            raise DoesNotCompile(source)
        return target

    def killer(self, changed: list[str]) -> str | None:
        """The first program that fails. Changed sources are compiled when a program needs them."""
        made: dict[str, Path] = {}
        for program, (parts, arguments) in self.programs.items():
            objects = []
            for source in (*self.library, *parts):
                if source in changed and source not in made:
                    made[source] = self.compile(source, self.mutant_flags, self.mutants)
                objects.append(made.get(source) or self.originals / f"{source.replace('/', '-')}.o")
            target = self.mutants / "program"
            wrapped = WRAPPED if "tests/test_no_memory" in parts else []
            linked = run("gcc", *self.flags, *wrapped, *objects, "-pthread", "-o", target)
            if not linked or not run(target, *arguments, cpu_seconds=self.cpu_seconds):
                return program
        return None


class Trial:
    """The originals, built plainly or with sanitizers; the sanitized build leaves out the golden files."""

    def __init__(self, sanitizers: bool) -> None:
        shutil.rmtree(WORK / "csrc", ignore_errors=True)
        WORK.mkdir(parents=True, exist_ok=True)
        shutil.copytree(CSRC, WORK / "csrc", ignore=shutil.ignore_patterns("corpus"))
        self.sanitizers = sanitizers
        if sanitizers:
            self.build = Build("sanitized", SANITIZED, SANITIZED, ("golden",))
        else:
            self.build = Build("plain", OPTIMISED, QUICK, ())
        if killer := self.build.killer([]):
            sys.exit(f"{killer} fails without a mutant")

    @cache  # noqa: B019
    def users(self, file: str) -> list[str]:
        """The sources that depend on the file."""
        path = self.path(file)
        if path.suffix == ".c":
            return [source_of(path, WORK / "csrc")]
        name = path.relative_to(WORK).as_posix()
        return [source for source in self.build.sources if name in self.includes(source)]

    def path(self, file: str) -> Path:
        """The path of the file with that name; names are unique."""
        (path,) = (WORK / "csrc").glob(f"*/{file}")
        return path

    @cache  # noqa: B019
    def includes(self, source: str) -> list[str]:
        """The files that a source includes."""
        command = ["gcc", "-MM", "-Icsrc", f"csrc/{source}.c"]
        return subprocess.run(command, cwd=WORK, capture_output=True, text=True, check=True).stdout.split()

    def judge(self, mutant: Mutant) -> str:
        """The outcome for one mutant; the file is restored."""
        path = self.path(mutant.file)
        original = path.read_text()
        lines = original.splitlines(keepends=True)
        assert lines[mutant.line - 1].rstrip("\n") == mutant.before
        lines[mutant.line - 1] = mutant.after + "\n"
        changed = self.users(mutant.file)
        path.write_text("".join(lines))
        try:
            return self.outcome(changed)
        except DoesNotCompile:
            return "does not compile"
        finally:
            path.write_text(original)

    def outcome(self, changed: list[str]) -> str:
        """The cheapest check first."""
        if killer := self.build.killer(changed):
            return f"killed: {killer}{', sanitized' if self.sanitizers else ''}"
        same = not self.sanitizers and all(self.same_code(source) for source in changed)
        return "equivalent" if same else "survived"

    def same_code(self, source: str) -> bool:
        """Whether the optimised object files of the mutant and the original are equal."""
        made = self.build.compile(source, OPTIMISED, self.build.mutants)
        return made.read_bytes() == (self.build.originals / made.name).read_bytes()


# ---- the command -----------------------------------------------------------------------------------------------------


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """The last outcome of each mutant, by its key."""
    if not path.exists():
        return {}
    found = map(json.loads, path.read_text().splitlines())
    return {f"{r['file']}|{r['before']}|{r['after']}": r for r in found}


def summary(results: list[dict[str, Any]]) -> str:
    """The number of mutants by outcome, and the share that was killed."""
    counts = Counter(r["outcome"].partition(":")[0] for r in results)
    tried = counts["killed"] + counts["survived"]
    kinds = ", ".join(f"{n} {outcome}" for outcome, n in counts.most_common())
    return f"{len(results)} mutants: {kinds}; {counts['killed'] / max(tried, 1):.1%} of {tried} killed"


def main() -> None:
    """Read the arguments, test the mutants without a result, print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=600, help="number of mutants; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", default="*", help="pattern of file names")
    parser.add_argument("--again", action="store_true", help="test survivors of earlier runs again")
    parser.add_argument("--sanitizers", action="store_true", help="run under sanitizers: slower, finds more")
    parser.add_argument("--list", action="store_true", help="print the survivors of the sample")
    parser.add_argument("--results", type=Path, default=WORK / "results.jsonl")
    options = parser.parse_args()

    mutants = all_mutants(options.files)
    if options.sample and options.sample < len(mutants):
        mutants = random.Random(options.seed).sample(mutants, options.sample)
    known = read_results(options.results)
    open_ones = [m for m in mutants if m.key not in known or (options.again and known[m.key]["outcome"] == "survived")]
    if open_ones:
        trial = Trial(options.sanitizers)
        with options.results.open("a") as log:
            for m in open_ones:
                known[m.key] = {**asdict(m), "outcome": trial.judge(m)}
                log.write(json.dumps(known[m.key]) + "\n")
                log.flush()
    results = [{**known[m.key], "line": m.line} for m in mutants]
    if options.list:
        for r in sorted(results, key=lambda r: (r["file"], r["line"])):
            if r["outcome"] == "survived":
                print(f"{r['file']}:{r['line']} {r['kind']}\n  - {r['before'].strip()}\n  + {r['after'].strip()}")
    print(summary(results))


if __name__ == "__main__":
    main()
