"""The pages do what they say: their code runs, their commands exist, their links lead somewhere.

Blocks of a page run in order, in one namespace and one empty directory, with small numbers:

| block    | what is done with it                                                             |
|----------|----------------------------------------------------------------------------------|
| `python` | executed                                                                         |
| `sh`     | lines that begin with `fp3o` run; `make`, `pip` and `python` name what exists    |
| `toml`   | the page's first one is the file `settings.toml`                                 |
| a title  | the block is the file of that name                                               |

Runs that a page only speaks of (`runs/my-run`) are copies of one small run. Training on the command
line is checked up to the point where it would begin, and nothing is evaluated, filmed or drawn; all
of this is done in `make test-slow`. A block that cannot run stands behind `<!-- not run: why -->`,
and its commands are still parsed.
"""

import ast
import dataclasses
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image

import fp3o
from fp3o import reports
from fp3o.cli import main as cli
from fp3o.envs import check
from fp3o.envs.registry import get_task
from fp3o.errors import MissingExtraError
from fp3o.experiments.framework import session
from fp3o.runs import evaluation, run
from fp3o.runs import run as runner
from fp3o.runs import video as film
from fp3o.runs.run_config import RunConfig
from fp3o.sharing.schemes import AUTO

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
TASK = "mpe/simple_speaker_listener"
KNOWN = ("runs/my-run", "runs/a", "runs/b", "runs/c", "runs/cheetah", "runs/battle", "my-policy")
"""Runs (and a policy) that pages speak of without making them."""
DEAR = {"elsewhere", "guide", "own", "probes", "sharing"}
"""Pages whose Python takes long: what it imports and defines is looked at every time."""


class Block(NamedTuple):
    """Some code of a page."""

    page: Path
    line: int
    kind: str
    code: str
    reason: str | None
    """Why it is not run."""
    title: str | None
    """The file that it is."""

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All fenced code of a page, in order."""
    found, lines = [], page.read_text().splitlines()
    numbered = iter(enumerate(lines, 1))
    said = ""
    for number, text in numbered:
        if fence := re.match(r' *```(\w*)(?: title="(.*?)")?', text):
            code = []
            for _, inner in numbered:
                if inner.strip() == "```":
                    break
                code.append(inner)
            reason = re.fullmatch(r"<!-- not run:(.*)-->", said.strip())
            words = reason and reason[1].strip()
            source = re.sub(r'--8<-- "(.*)"', part, textwrap.dedent("\n".join(code)))
            found.append(Block(page, number, fence[1], source, words, fence[2]))
            said = ""
        elif text.strip():
            said = text
    return found


def part(quoted: re.Match[str]) -> str:
    """A file of the repository that a page takes in."""
    return (ROOT / quoted[1]).read_text()


def commands(block: Block) -> list[str]:
    """The lines of a `sh` block, with continued ones joined."""
    lines = block.code.replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.strip() and line[0] != "#"]


def titled(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# A small world to run in -------------------------------------------------------------------------


def small(plan: RunConfig) -> RunConfig:
    """The same plan with as little to do as possible."""
    chunk = plan.learner.sequence_steps
    config = plan.learner.replace(num_envs=2, rollout=2 * chunk, minibatches=1, epochs=1)
    return dataclasses.replace(
        plan, config=config, steps=config.num_envs * config.rollout, seeds=min(plan.seeds, 2),
        eval_episodes=2, final_episodes=4, eval_every=1,
    )  # fmt: skip


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One small run, and a policy of it, for all pages."""
    folder = tmp_path_factory.mktemp("pages")
    plan = small(run.configure(TASK, "demo", None, {"seeds": 2}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "report", lambda *_: None)
        patch.setattr(runner, "references", scripted)
        run.start(plan, folder / "run", run.display("quiet"), ("none",))
    fp3o.Policy.load(folder / "run").save(folder / "policy")
    return folder


def scripted(task: str, variant: str | None, episodes: int) -> dict[str, dict[str, Any]]:
    """In place of scripted policies at play, which takes a while."""
    description = get_task(task)
    if not description.baselines(description.env(variant)):
        return {}
    outcomes = dict.fromkeys(description.spec(variant).episode_metrics, 0.5)
    row = {
        "return": -1.0,
        "std_param": 1.0,
        "stderr": 0.1,
        "outcomes": outcomes,
        "episodes": episodes,
    }
    return {"random": row}


class World:
    """A directory in which the blocks of one page run, with `whole` or without training."""

    def __init__(self, page: Path, trained: Path, patch: pytest.MonkeyPatch, whole: bool):
        self.page, self.trained, self.whole = page, trained, whole
        self.names: dict[str, Any] = {"__name__": "__page__"}
        self.by_command = False
        text = page.read_text()
        for known in KNOWN:
            if known in text and not re.search(rf"fp3o train .*--out {known}\b", text):
                self.copy(known)
        for block in blocks(page):
            if block.kind == "toml" and not Path("settings.toml").exists():
                Path("settings.toml").write_text(block.code)
        self.real = {"start": run.start, "settle": run.resolve, "resume": run.resume}
        patch.setattr(run, "settle", self.settle)
        patch.setattr(run, "start", self.start)
        patch.setattr(run, "resume", self.resume)
        patch.setattr(runner, "report", lambda *_: None)
        patch.setenv("FP3O_DEBUG", "1")  # errors are raised, not printed
        few = lambda n: min(n, 4)  # noqa: E731
        fewer(patch, evaluation, "evaluate", 1, "episodes", few)
        fewer(patch, evaluation, "references", 2, "episodes", few)
        fewer(patch, film, "render", 2, "episodes", lambda n: 1)
        fewer(patch, check, "check_env", 1, "steps", lambda n: min(n, 30))
        patch.setattr(session, "perform", self.perform)
        if not whole:
            patch.setattr(evaluation, "references", scripted)
            patch.setattr(runner, "references", scripted)
            patch.setattr(evaluation, "evaluate", self.judge)
            patch.setattr(film, "render", self.film)
            patch.setattr(reports, "report", self.report)
            patch.setattr(check, "check_env", self.look)
            patch.setattr("fp3o.cli.diagnosis._tasks", list)

    def copy(self, place: str | Path) -> Path:
        """The run (or the policy) of all pages under the name this page gives it."""
        source = self.trained / ("policy" if str(place) == "my-policy" else "run")
        return Path(shutil.copytree(source, place))

    def settle(self, plan: RunConfig) -> RunConfig:
        if not self.whole and AUTO in (plan.learner.sharing, plan.learner.critic_sharing):
            plan = dataclasses.replace(plan, config=plan.learner.replace(sharing="full"))
        self.real["settle"](plan)  # as it stands: it must fit
        return self.real["settle"](small(plan))

    def start(self, plan: RunConfig, out: Any, screen: Any, loggers: Any) -> run.Run:
        if self.whole or not (self.by_command or plan.task == TASK):
            return self.real["start"](plan, out, run.display("quiet"), ("none",))
        run.check_loggers([name for name in loggers if name not in ("wandb", "mlflow")])
        return run.Run(self.copy(out if out is not None else run.free_path(plan)), plan, True)

    def resume(self, path: Any, *, steps: Any = None, **rest: Any) -> run.Run:
        more = 2 * small(run.configure(TASK, "demo", None, {})).steps
        steps = more if steps is not None and self.whole else None
        with warnings.catch_warnings():  # games that cannot be put back are said to be cut
            warnings.filterwarnings("ignore", "(?s).*games cannot be put back", RuntimeWarning)
            return self.real["resume"](path, steps=steps, progress="quiet", loggers=("none",))

    def perform(self, order: session.Order) -> int:
        """Experiments take hours; the name and the part must exist."""
        return int(not any(order.part in cell.label for cell in session.laid_out(order)))

    def judge(self, path: Any, *_: Any, which: str = "last", **options: Any) -> dict[str, Any]:
        """Policies must be there."""
        row = scripted(TASK, None, 4)["random"]
        found = evaluation.folders(Path(path), which)
        rows = [{"name": name, **row} for name, place in found.items() if fp3o.Policy.load(place)]
        return {"task": TASK, "agents": 2, "policies": rows, "references": {"random": row}}

    def film(self, policy: Any, out: Any, *_: Any, **options: Any) -> Path:
        """A film without pictures; the policy must be there."""
        assert isinstance(policy, fp3o.Policy) and Path(out).suffix in film.FORMATS
        Path(out).touch()
        return Path(out)

    def report(self, paths: Any, out: Any, *rest: Any) -> Path:
        """Drawing takes seconds; runs must be there."""
        assert all(reports.read_run(path) for path in paths)
        return Path(out)

    def look(self, env: Any, **options: Any) -> check.EnvReport:
        """Playing takes seconds; the task must exist."""
        if not isinstance(env, str):
            return check.EnvReport(env.spec, [])
        return check.EnvReport(get_task(env.split(":")[0] if "/" in env else env).spec(), [])

    def run(self, block: Block) -> None:
        """One block."""
        if block.title:
            Path(block.title).write_text(block.code)
        elif block.kind == "python":
            source = "\n" * block.line + block.code
            tree = ast.parse(source)
            if not self.whole and self.page.stem in DEAR:
                tree.body = [node for node in tree.body if light(node)]
            exec(compile(tree, titled(block.page), "exec"), self.names)
        elif block.kind == "sh":
            for line in commands(block):
                self.command(block, line)

    def command(self, block: Block, line: str) -> None:
        words = shlex.split(line)
        if words[0] == "cmp" and self.whole:
            assert subprocess.run(words, check=False).returncode == 0, f"{block.place}: {line}"
        if words[0] != "fp3o":
            return
        self.provide(words)
        self.by_command = True
        try:
            status = cli.main(words[1:])
        except MissingExtraError:
            parse(line)
            status = 0
        finally:
            self.by_command = False
        assert status == 0, f"{block.place}: {line}"

    def provide(self, words: list[str]) -> None:
        """`python:meet:Meet` is a file that the page tells to write: that of its class."""
        for word in words:
            if (own := re.match(r"python:(\w+):(\w+)", word)) and not Path(f"{own[1]}.py").exists():
                sources = [block.code for block in blocks(self.page) if block.kind == "python"]
                code = [text for text in sources if re.search(rf"(class|def) {own[2]}\b", text)]
                assert code, f"{titled(self.page)} does not show {own[2]}"
                Path(f"{own[1]}.py").write_text(code[0])


def light(node: ast.stmt) -> bool:
    """Whether a statement takes no time: it imports, defines, or writes a file."""
    defines = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
    return isinstance(node, defines) or ".write_text(" in ast.unparse(node)


def fewer(
    patch: pytest.MonkeyPatch,
    home: Any,
    name: str,
    place: int,
    key: str,
    less: Callable[[int], int],
) -> None:
    """Make a function ask for less."""
    real = getattr(home, name)

    def function(*args: Any, **options: Any) -> Any:
        given = list(args)
        if len(given) > place:
            given[place] = less(given[place])
        elif key in options or name != "references":
            options[key] = less(options.get(key, 1000))
        return real(*given, **options)

    patch.setattr(home, name, function)


class ParsedError(Exception):
    """A command has been read."""


def parse(line: str) -> None:
    """Read a command without doing it: its options must exist and have values that fit."""

    def stop(plan: RunConfig) -> None:
        plan.learner.row  # noqa: B018
        raise ParsedError

    def read(*args: Any) -> Any:
        asked(*args)
        raise ParsedError

    words, asked = shlex.split(line)[1:], cli.ask
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ParsedError):
        patch.setenv("FP3O_DEBUG", "1")
        if words[0] == "train":
            patch.setattr(run, "settle", stop)
        else:
            patch.setattr(cli, "ask", read)
        cli.main(words)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    yield tmp_path
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


# The pages ---------------------------------------------------------------------------------------

CODED = [page for page in PAGES if any(b.kind in ("python", "sh") for b in blocks(page))]


@pytest.mark.parametrize("page", CODED, ids=titled)
def test_page(page: Path, trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's code runs; commands that train are checked up to there."""
    world = World(page, trained, monkeypatch, whole=False)
    for block in blocks(page):
        if block.reason is None:
            world.run(block)


@pytest.mark.slow
@pytest.mark.parametrize("page", CODED, ids=titled)
def test_whole_page(page: Path, trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's code runs, training included, with small numbers."""
    world = World(page, trained, monkeypatch, whole=True)
    for block in blocks(page):
        if block.reason is None:
            world.run(block)


@pytest.mark.parametrize("page", CODED, ids=titled)
def test_what_is_not_run(page: Path) -> None:
    """Every block that is not run has a reason, and its commands are right as far as one sees."""
    for block in blocks(page):
        if block.reason is not None:
            assert len(block.reason.split()) > 1, f"{block.place}: say why it is not run"
            print(f"{block.place} is not run: {block.reason}")
        for line in commands(block) if block.kind == "sh" else ():
            known = named_thing(line)
            assert known or block.reason, f"{block.place}: not run, and no reason given: {line}"
            if block.reason and line.startswith("fp3o "):
                parse(line)


def named_thing(line: str) -> bool:
    """Whether a line is run, or names something that exists."""
    program, _, rest = line.partition(" ")
    if program == "make":
        return rest in re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text())
    if program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        asked = re.findall(r"(?:\.|fp3o)\[(.*?)\]", rest)
        return {*",".join(asked).split(",")} <= {*extras["optional-dependencies"], ""}
    if program == "python":
        return (ROOT / rest.split()[0]).exists()
    return program in ("fp3o", "cmp")


def test_a_wrong_option_is_found() -> None:
    """The parser of lines that are not run refuses what does not exist."""
    parse("fp3o train smac/3s5z --preset many --algorithm happo --out runs/x")
    parse("fp3o evaluate runs/x --episodes 5k")
    for line in ("fp3o train smac/3s5z --presett many", "fp3o evaluate runs/x --episode 5"):
        with pytest.raises(SystemExit):
            parse(line)
    for line in ("fp3o train smac/3s5z --algorithm hapo", "fp3o trian smac/3s5z"):
        with pytest.raises(ValueError, match="did you mean"):
            parse(line)


# Links, reference, pictures ----------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made on the site and on the web."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text())
    titles = re.findall(r"(?m)^#+ (.*)$", text)
    plain = (re.sub(r"[^\w\s-]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", t)) for t in titles)
    made = {re.sub(r"[-\s]+", "-", title.strip().lower()) for title in plain}
    return made | {*re.findall(r"(?m)^::: (\S+)$", text)}


@pytest.mark.parametrize("page", PAGES, ids=titled)
def test_links(page: Path) -> None:
    """Every link to a file of the repository leads somewhere, anchors included."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text())
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        if "://" in target:
            continue
        found = page.parent / target if target else page
        assert found.exists(), f"{titled(page)} links to {target}"
        if anchor:
            assert anchor in anchors(found), f"{titled(page)} links to {target}#{anchor}"


def test_every_page_is_in_the_menu() -> None:
    """The menu of the site names every page of it."""
    menu = (ROOT / "mkdocs.yml").read_text().split("nav:")[1]
    for page in DOCS.rglob("*.md"):
        assert page.relative_to(DOCS).as_posix() in menu


def test_the_reference_has_every_name() -> None:
    """Everything that `import fp3o` offers is on the reference page, under its own name."""
    entries = re.findall(r"(?m)^::: (\S+)$", (DOCS / "api.md").read_text())
    found = {}
    for entry in entries:
        home, _, name = entry.rpartition(".")
        found[name] = getattr(importlib.import_module(home), name)
    for name in fp3o.__all__:
        assert found.get(name) is getattr(fp3o, name), name


SKETCHES = sorted(
    path.stem for path in (DOCS / "pictures").glob("*.py") if "from pen import" in path.read_text()
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in ("auto", "particles"))) for n in SKETCHES],
)
def test_pictures(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs behind the pictures run and make pictures of the size that is kept."""
    monkeypatch.syspath_prepend(DOCS / "pictures")
    path = importlib.import_module(name).draw(tmp_path)
    kept = DOCS / "assets" / path.name
    assert max(path.stat().st_size, kept.stat().st_size) < 150_000
    with Image.open(path) as new, Image.open(kept) as old:
        assert new.size == old.size


@pytest.mark.slow
def test_the_site_is_built(tmp_path: Path) -> None:
    """Without a warning."""
    program = Path(sys.executable).parent / "mkdocs"
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        [program, "build", "--strict", "--site-dir", tmp_path], cwd=ROOT, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
