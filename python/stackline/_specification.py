"""A small builder of specifications. `str(spec)` is the text; `stackline.check(spec)` judges it.

    spec = stackline.Specification(seed=42)
    wan = spec.network("wan")
    wan.hosts("a", "b")
    wan.link("a", "b", "10 Mbit/s", "5 ms", loss="0.1%")
    for size in (32, 1024):
        spec.measure(request_response(size, count=1000), between=("a", "b"), across=wan, over=["tcp", "udp"], runs=10)

A value is a number or a text with its unit, as in a specification: `1024`, `"64 KiB"`, `"uniform(64, 1500)"`. Texts are taken as
they are, but none may end its statement.
"""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import InputError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
# What would end a statement, or begin a comment.
_FORBIDDEN = re.compile(r"[;{}|#\r\n]")

_TIME = re.compile(r"([0-9.]+|<[A-Za-z0-9_.-]+>)\s*([a-z]*)\Z")

Value = Union[int, float, str, "Variable"]


class Variable:
    """A variable of a sweep: `Variable("N", [1, 8, 64])`, or with a series as text: `Variable("N", "1, 8 ... 4096")`."""

    def __init__(self, name: str, values: Union[str, Sequence[Union[int, float, str]]]) -> None:
        self.name = _name(name, "a variable")
        self.values = _value(values) if isinstance(values, str) else ", ".join(_value(one) for one in values)
        if not self.values:
            raise InputError(f"the variable {name} has no values", 'give some: Variable("N", [1, 8, 64])')

    def __str__(self) -> str:
        return f"<{self.name}>"


class Stack:
    """A protocol stack with its options."""

    def __init__(self, name: str, **options: Union[Value, bool]) -> None:
        self.name = _name(name, "a stack")
        self.options = options
        written = [text for text in map(_option, options, options.values()) if text]
        self._text = f"{self.name}({', '.join(written)})" if written else self.name

    def __str__(self) -> str:
        return self._text


def stack(name: str, **options: Union[Value, bool]) -> Stack:
    """A stack with options: `stack("tcp", nodelay=True, receive_buffer="64 KiB")`. An option that is False is left out."""
    return Stack(name, **options)


def _option(name: str, value: Union[Value, bool]) -> Optional[str]:
    _name(name, "an option")
    if value is False or value is None:
        return None
    return name if value is True else f"{name} = {_value(value)}"


class Application:
    """What is done: an application type with its sizes and timings."""

    def __init__(
        self,
        name: str,
        *sizes: Value,
        count: Optional[Value] = None,
        amount: Optional[Value] = None,
        timings: Sequence[Value] = (),
    ) -> None:
        self.name = _name(name, "an application type")
        self.sizes = [_value(size) for size in sizes]
        self.count = None if count is None else _value(count)
        self.amount = None if amount is None else _value(amount)
        self.timings = [_timing(timing) for timing in timings]
        self.variables = [one for one in [*sizes, count, amount, *timings] if isinstance(one, Variable)]
        if count is not None and amount is not None:
            raise InputError("`count` and `amount` both say how much", "omit one of them")
        if count is not None and not sizes:
            raise InputError("a count needs the size of what is counted", "give a size")

    def __str__(self) -> str:
        words = [self.name]
        if self.sizes:
            size = ", ".join(self.sizes)
            words.append(size if self.count is None else f"{size}*{self.count}")
        if self.amount is not None:
            words.append(self.amount)
        return " ".join([*words, *self.timings])


def application(
    name: str,
    *sizes: Value,
    count: Optional[Value] = None,
    amount: Optional[Value] = None,
    timings: Sequence[Value] = (),
) -> Application:
    """Any application type, also of a procedure of your own."""
    return Application(name, *sizes, count=count, amount=amount, timings=timings)


def request_response(
    size: Value,
    reply: Optional[Value] = None,
    *,
    count: Optional[Value] = None,
    arrival: Optional[Value] = None,
    service: Optional[Value] = None,
) -> Application:
    """Requests and responses in turn. `arrival` is the time between requests or a rate (`"2000/s"`), `service` the responder's."""
    if service is not None and arrival is None:
        raise InputError("`service` is the second timing", "give `arrival` too")
    timings = [one for one in (arrival, service) if one is not None]
    sizes = [size] if reply is None else [size, reply]
    return Application("request_response", *sizes, count=count, timings=timings)


def bulk_get(size: Value, *, count: Optional[Value] = None, amount: Optional[Value] = None) -> Application:
    """The responder sends in bulk: `count` units of a size, or an amount such as `"10 MB"`."""
    return Application("bulk_get", size, count=count, amount=amount)


def bulk_put(size: Value, *, count: Optional[Value] = None, amount: Optional[Value] = None) -> Application:
    """The initiator sends in bulk."""
    return Application("bulk_put", size, count=count, amount=amount)


def connect_disconnect(count: Value) -> Application:
    """Connections that are opened and closed."""
    return Application("connect_disconnect", 0, count=count)


def stream(size: Value, *, count: Optional[Value] = None, interval: Optional[Value] = None) -> Application:
    """One way from the initiator, a unit each interval."""
    return Application("stream", size, count=count, timings=[] if interval is None else [interval])


class Network:
    """A modelled network of a specification: hosts, switches and links."""

    def __init__(self, name: str) -> None:
        self.name = _name(name, "a network")
        self._lines: List[str] = []
        self.variables: List[Variable] = []

    def hosts(self, *names: str) -> Network:
        """Declares hosts."""
        return self._nodes("host", names)

    def switches(self, *names: str) -> Network:
        """Declares switches, which forward packets."""
        return self._nodes("switch", names)

    def _nodes(self, word: str, names: Sequence[str]) -> Network:
        if not names:
            raise InputError(f"a {word} needs a name", f'give at least one: .{word}s("a")')
        self._lines.append(f"{word} {', '.join(_name(name, f'a {word}') for name in names)};")
        return self

    def link(
        self,
        a: str,
        b: str,
        rate: Value,
        delay: Value,
        *,
        loss: Optional[Value] = None,
        queue: Optional[Value] = None,
        jitter: Optional[Value] = None,
        mtu: Optional[Value] = None,
        one_way: bool = False,
        more: str = "",
    ) -> Network:
        """A link of two nodes: `rate` such as `"10 Mbit/s"` or `"unlimited"`, one-way `delay` such as `"5 ms"`.

        `more` has further additions as text: `"duplicate 0.1%"`.
        """
        clauses: Dict[str, Optional[Value]] = {"loss": loss, "jitter": jitter, "mtu": mtu, "queue": queue}
        sign = "->" if one_way else "-"
        words = [f"link {_name(a, 'a node')} {sign} {_name(b, 'a node')} {_value(rate)} {_value(delay)}"]
        words += [f"{word} {_value(value)}" for word, value in clauses.items() if value is not None]
        if more:
            words.append(_value(more))
        self.variables += [one for one in (rate, delay, *clauses.values()) if isinstance(one, Variable)]
        self._lines.append(" ".join(words) + ";")
        return self

    def statement(self, text: str) -> Network:
        """Anything else of a network, as text."""
        self._lines.append(text.rstrip().rstrip(";") + ";")
        return self

    def __str__(self) -> str:
        return "\n".join([f"network {self.name} {{", *(f"  {line}" for line in self._lines), "}"])


_COMPOSERS = ("parallel", "background", "priority background", "total")


class Specification:
    """A specification that is built step by step; `str()` gives its text."""

    def __init__(self, *, seed: Optional[int] = None) -> None:
        self._head: List[str] = [] if seed is None else [f"seed {int(seed)};"]
        self._items: List[Union[str, Network]] = []

    def network(self, name: str) -> Network:
        """Adds a network, to which hosts and links are added."""
        network = Network(name)
        self._items.append(network)
        return network

    def host(self, name: str, via: str = "local", address: Optional[str] = None, at: Optional[str] = None) -> Specification:
        """Adds a host: `via` is `local`, or `ssh`, `tcp` or `exec` with an address or a command."""
        words = [f"host {_name(name, 'a host')} via {_name(via, 'a way to a host')}"]
        if address is not None:
            words.append(_quoted(address))
        if at is not None:
            words.append(f"at {_quoted(at)}")
        self._items.append(" ".join(words) + ";")
        return self

    def statement(self, text: str) -> Specification:
        """Adds anything else, such as a procedure, as text."""
        self._items.append(text.strip())
        return self

    def measure(
        self,
        *parts: Union[Application, str],
        runs: int = 1,
        between: Optional[Tuple[str, str]] = None,
        to: Optional[str] = None,
        pairs: Optional[Value] = None,
        over: Union[None, str, Stack, Sequence[Union[str, Stack]]] = None,
        across: Union[None, str, Network] = None,
        world: Optional[str] = None,
        composer: Optional[str] = None,
        warmup: Optional[Value] = None,
        time_limit: Optional[Value] = None,
        until: Optional[str] = None,
        sweep: Sequence[Variable] = (),
    ) -> Specification:
        """Adds a measurement of one part, or of several that a composer puts together.

        between: initiator and responder. to: the address of a server that others have written (`"http://..."`).
        pairs: how many pairs of each part at once. over: stacks. across: a network. world: `live`, `emulated`, `simulated`.
        composer: `parallel`, `background`, `priority background` or `total`. until: a precision such as `"2%"`.
        time_limit: of each run, seconds or with a unit. sweep: variables that stand in texts only; others are found.
        """
        if not parts:
            raise InputError("a measurement needs a part", "give one: spec.measure(request_response(32, count=1000))")
        if composer is not None and composer not in _COMPOSERS:
            raise InputError(f"{composer!r} is not a composer", f"use one of {', '.join(_COMPOSERS)}")
        if len(parts) > 1 and composer is None:
            raise InputError("several parts need a composer", 'give one: composer="parallel"')
        given: List[Tuple[str, Optional[Value]]] = [("warmup", warmup), ("timelimit", time_limit), ("until", until)]
        words = [str(int(runs)), *(f"{word} {_value(value)}" for word, value in given if value is not None)]
        stacks = [over] if isinstance(over, (str, Stack)) else list(over or ())
        clauses = [f"over {', '.join(str(one) if isinstance(one, Stack) else _value(one) for one in stacks)}"] if stacks else []
        if across is not None:
            clauses.append(f"across {across.name if isinstance(across, Network) else _name(across, 'a network')}")
        if world is not None:
            clauses.append(f"in {_name(world, 'a world')}")
        ends = []
        if between is not None:
            ends = [f"from {_name(between[0], 'a host')}", f"to {_name(between[1], 'a host')}"]
        elif to is not None:
            ends = [f"to {_quoted(to)}"]
        count = [] if pairs is None else [_value(pairs)]
        each = [" ".join([*count, *ends, str(part) if isinstance(part, Application) else _part(part)]) for part in parts]
        if composer is not None:
            words.append(" ".join([composer, *clauses]) + ":")
            words.append(" | ".join(each))
        else:
            words += [each[0], *clauses]
        variables = [one for part in parts if isinstance(part, Application) for one in part.variables]
        variables += [one for one in (pairs, time_limit, warmup) if isinstance(one, Variable)]
        variables += [one for used in stacks if isinstance(used, Stack) for one in used.options.values() if isinstance(one, Variable)]
        variables += across.variables if isinstance(across, Network) else []
        sweeps = _sweeps([*variables, *sweep])
        self._items.append(" ".join(words) + ";" + "".join(f" {name} = {values};" for name, values in sweeps.items()))
        return self

    def __str__(self) -> str:
        return "\n".join([*self._head, *map(str, self._items)]) + "\n"

    def __repr__(self) -> str:
        return f"<stackline.Specification of {len(self._items)} statements>"


def _sweeps(variables: Sequence[Variable]) -> Mapping[str, str]:
    found: Dict[str, str] = {}
    for variable in variables:
        if found.setdefault(variable.name, variable.values) != variable.values:
            raise InputError(f"the variable {variable.name} has two lists of values", "give one of them another name")
    return found


def _name(text: str, what: str) -> str:
    if not isinstance(text, str) or not _NAME.match(text):
        raise InputError(f"{text!r} is not a name of {what}", "names have letters, digits, `_`, `-` and `.`")
    return text


def _value(value: Value) -> str:
    """A value as it is written in a specification."""
    if isinstance(value, bool):
        raise InputError(f"{value} is not a quantity", "give a number, or a text with a unit")
    if isinstance(value, float):
        # Without an exponent, which the language does not have everywhere.
        text = f"{value:.12f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else f"{value:.0f}"
    else:
        text = str(value).strip()
    if not text or _FORBIDDEN.search(text):
        raise InputError(f"{text!r} is not a value", 'give a number, or a text with a unit such as "64 KiB"')
    return text


def _timing(value: Value) -> str:
    """A timing: a distribution, a rate, or a time that is always the same."""
    text = _value(value)
    return f"constant({text})" if _TIME.match(text) else text


def _part(text: str) -> str:
    text = text.strip()
    if not text or _FORBIDDEN.search(text):
        raise InputError(f"{text!r} is not one part", "give each part as a text of its own")
    return text


def _quoted(text: str) -> str:
    if re.search(r'["\r\n]', text):
        raise InputError(f"{text!r} cannot be quoted", "it may have neither quotation marks nor line breaks")
    return f'"{text}"'
