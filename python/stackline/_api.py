"""The functions of the package: each is a request to the shared session, or a command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union, overload

from ._errors import InputError, StacklineError, from_answer
from ._progress import ProgressArgument, shown
from ._rows import Rows
from ._run import Check, Comparison, Run, command_json
from ._session import Session, shared

if TYPE_CHECKING:
    from ._specification import Specification

Text = Union[str, "os.PathLike[str]", "Specification"]
Value = Union[int, float, str]
Variables = Mapping[str, Union[Value, Sequence[Value]]]


def session() -> Session:
    """The resident program that serves this process."""
    return shared()


def _text(
    spec: Text,
    variables: Optional[Variables] = None,
    over: Union[None, str, Sequence[str]] = None,
    world: Optional[str] = None,
    hosts: Optional[Mapping[str, str]] = None,
    seed: Optional[int] = None,
    cpu: Optional[Sequence[int]] = None,
) -> Dict[str, Any]:
    """The fields of a request that name a specification and replace parts of it."""
    fields: Dict[str, Any] = {}
    if isinstance(spec, os.PathLike):
        fields["file"] = os.path.abspath(os.fspath(spec))
    elif isinstance(spec, str) and _is_file(spec):
        fields["file"] = os.path.abspath(spec)
    else:
        fields["specification"] = str(spec)
    given: Dict[str, Any] = {
        "variables": {name: _plain(value) for name, value in variables.items()} if variables else None,
        "over": over if over is None or isinstance(over, str) else ", ".join(map(str, over)),
        "world": world,
        "hosts": [f"{name}={where}" for name, where in hosts.items()] if hosts else None,
        "seed": seed,
        "cpu": list(cpu) if cpu is not None else None,
    }
    fields.update({name: value for name, value in given.items() if value is not None})
    return fields


def _is_file(text: str) -> bool:
    """Whether a text is the name of a file: those end in `.stackline`, and no specification does."""
    return text.endswith(".stackline") and "\n" not in text


def _plain(value: Any) -> Any:
    """A value of a variable; numbers of numpy become Python's."""
    if isinstance(value, (str, int, float)):
        return value
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return value.item()
    try:
        return [_plain(one) for one in value]
    except TypeError:
        raise InputError(f"{value!r} is not a value of a variable", "give a number, a text such as '64 KiB', or a list") from None


def run(
    spec: Text,
    *,
    variables: Optional[Variables] = None,
    over: Union[None, str, Sequence[str]] = None,
    world: Optional[str] = None,
    hosts: Optional[Mapping[str, str]] = None,
    seed: Optional[int] = None,
    cpu: Optional[Sequence[int]] = None,
    trace: bool = False,
    keep: bool = True,
    name: Optional[str] = None,
    files: Union[None, str, os.PathLike[str]] = None,
    percentiles: Optional[Sequence[Union[str, float]]] = None,
    progress: ProgressArgument = None,
) -> Run:
    """Runs a specification and returns its results.

    spec: the text, a `Specification`, or a file (a `Path`, or a text that ends in `.stackline`).
    variables: values of variables in place of those in the text: `{"N": 64}`, `{"N": [8, "64 KiB"]}`.
    over, world, hosts, seed, cpu: as the flags `--over`, `--in`, `--host`, `--seed` and `--cpu` of `stackline run`.
    trace: keep events, for `events()`, `lifelines()` and `findings()`.
    keep: whether a run directory is made. Without one, nothing is written.
    name: the given name of the directory.
    files: the directory for the files of `< file` and `> file`.
    percentiles: further percentiles of times, such as `[75, 99.99]`, in `row.response_s.percentiles`.
    progress: None for a line on a terminal, False for none, or a function.

    A KeyboardInterrupt cancels the run and ends its processes. Runs that were finished are kept, marked incomplete.
    """
    fields = _text(spec, variables, over, world, hosts, seed, cpu)
    fields.update({"trace": trace, "keep": keep})
    if name is not None:
        fields["name"] = name
    if files is not None:
        fields["files"] = os.path.abspath(os.fspath(files))
    if percentiles is not None:
        fields["percentiles"] = [str(one) for one in percentiles]
    server = shared()
    on_progress, end = shown(progress)
    try:
        answer = server.request("run", fields, on_progress=on_progress)
        if on_progress is not None:
            on_progress.complete()
    except StacklineError as error:
        so_far = getattr(error, "answer", {}).get("result")
        if so_far is not None:
            error.run = Run(so_far, server.directory, server.program)
        raise
    finally:
        end()
    return Run(answer["result"], server.directory, server.program, answer["notes"])


@overload
def simulate(  # type: ignore[overload-overlap]  # A text is an iterable of texts, too.
    specs: Text,
    *,
    variables: Optional[Variables] = ...,
    over: Union[None, str, Sequence[str]] = ...,
    seed: Optional[int] = ...,
    percentiles: Optional[Sequence[Union[str, float]]] = ...,
    errors: str = ...,
    progress: ProgressArgument = ...,
) -> Run: ...


@overload
def simulate(
    specs: Iterable[Text],
    *,
    variables: Union[None, Variables, Sequence[Variables]] = ...,
    over: Union[None, str, Sequence[str]] = ...,
    seed: Union[None, int, Sequence[int]] = ...,
    percentiles: Optional[Sequence[Union[str, float]]] = ...,
    errors: str = ...,
    progress: ProgressArgument = ...,
) -> List[Run]: ...


def simulate(
    specs: Union[Text, Iterable[Text]],
    *,
    variables: Any = None,
    over: Union[None, str, Sequence[str]] = None,
    seed: Any = None,
    percentiles: Optional[Sequence[Union[str, float]]] = None,
    errors: str = "raise",
    progress: ProgressArgument = None,
) -> Any:
    """Simulates a specification, or many on all cores, and keeps nothing.

    One specification gives a `Run`, several give a list in their order. `variables` and `seed` are those of all, or lists with one
    for each. With `errors="return"` a specification that fails has its exception in the list, and the others go on.
    """
    from ._specification import Specification

    if errors not in ("raise", "return"):
        raise InputError(f"errors={errors!r} is not known", 'use "raise" or "return"')
    is_one = isinstance(specs, (str, os.PathLike, Specification))
    texts: List[Any] = [specs] if is_one else list(specs)  # type: ignore[arg-type]
    each_variables = _for_each(variables, len(texts), "variables", Mapping)
    each_seed = _for_each(seed, len(texts), "seed", int)
    fields: Dict[str, Any] = {
        "specifications": [
            _text(text, one_variables, over, None, None, one_seed)
            for text, one_variables, one_seed in zip(texts, each_variables, each_seed)
        ]
    }
    if percentiles is not None:
        fields["percentiles"] = [str(one) for one in percentiles]
    server = shared()
    made: List[Any] = [None] * len(texts)

    def take(item: Mapping[str, Any]) -> None:
        error = item.get("error")
        if error is None:
            made[item["index"]] = Run(item["result"], server.directory, server.program, item["notes"])
            return
        exception = from_answer(error)
        if errors == "raise":
            raise exception
        made[item["index"]] = exception

    on_progress, end = shown(progress)
    try:
        server.request("simulate", fields, on_progress=on_progress, on_item=take)
        if on_progress is not None:
            on_progress.complete()
    finally:
        end()
    return made[0] if is_one else made


def _for_each(value: Any, count: int, name: str, one: type) -> List[Any]:
    """The value for each of several specifications: the same, or one of a list."""
    if value is None or isinstance(value, one) or hasattr(value, "item") and not hasattr(value, "__len__"):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise InputError(f"there are {len(values)} values of `{name}` for {count} specifications", "give one, or one for each")
    return values


def check(
    spec: Text,
    *,
    variables: Optional[Variables] = None,
    over: Union[None, str, Sequence[str]] = None,
    world: Optional[str] = None,
    hosts: Optional[Mapping[str, str]] = None,
    seed: Optional[int] = None,
) -> Check:
    """Checks a specification. Nothing is run, and a wrong one raises nothing."""
    answer = shared().request("check", _text(spec, variables, over, world, hosts, seed))
    return Check(answer["result"])


def predict(
    spec: Text,
    *,
    variables: Optional[Variables] = None,
    over: Union[None, str, Sequence[str]] = None,
    seed: Optional[int] = None,
    simulate: bool = False,
    forms: bool = False,
    run: Union[None, Run, str, os.PathLike[str]] = None,
) -> Rows:
    """Predicts results by closed forms, and by up to two seconds of simulation where none applies.

    A row for each measured part: `metric`, `predicted`, `interval`, `unit`, `limit`, `not_covered` and more. `simulate=True` takes up
    to a minute, `forms=True` simulates nothing; `run` adds what a kept run measured.
    """
    fields = _text(spec, variables, over, None, None, seed)
    fields.update({"simulate": simulate, "forms": forms})
    if run is not None:
        fields["run"] = _run_name(run)
    answer = shared().request("predict", fields)
    return Rows(answer["result"]["predictions"])


def compare(a: Union[Run, str, os.PathLike[str]], b: Union[None, Run, str, os.PathLike[str]] = None) -> Comparison:
    """Compares two kept runs, or the stacks of one, by ratios with their 95 % intervals."""
    fields = {"before": _run_name(a)}
    if b is not None:
        fields["after"] = _run_name(b)
    answer = shared().request("compare", fields)
    return Comparison(answer["result"], answer["notes"])


def open_run(name: Union[str, os.PathLike[str]] = "last") -> Run:
    """A kept run: its directory, the directory's name, its given name, or `last`."""
    server = shared()
    found = command_json(server.program, ["show", "--json", "--", os.fspath(name)])
    return Run(found, server.directory, server.program)


def runs(text: Optional[str] = None) -> Rows:
    """The kept runs, newest first: `name`, `path`, `started`, `state`, `about`, `headline`, `note`, `bytes`."""
    words = ["runs", "--all", "--json", *(() if text is None else ("--", text))]
    return Rows(command_json(shared().program, words)["runs"])


def _run_name(run: Union[Run, str, os.PathLike[str]]) -> str:
    if not isinstance(run, Run):
        return os.fspath(run)
    if run.path is None:
        raise InputError("this run was not kept, so it cannot be compared", "use stackline.run with keep=True")
    return str(run.path)
