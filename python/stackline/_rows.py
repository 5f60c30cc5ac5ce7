"""Objects of the promised JSON with attributes, and lists of them as columns and tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union, overload

from ._errors import InputError, MissingLibrary

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

# Ends of names, the longest first, and their units.
_UNITS = (
    ("_us_per_call", "us/call"),
    ("_s_per_gb", "s/GB"),
    ("_mbit_s", "Mbit/s"),
    ("_bit_s", "bit/s"),
    ("_per_s", "1/s"),
    ("_percent", "%"),
    ("_share", "1"),
    ("_bytes", "B"),
    ("_ns", "ns"),
    ("_us", "us"),
    ("_ms", "ms"),
    ("_s", "s"),
)
# What the statistics of one quantity are called.
_STATISTICS = frozenset({"mean", "ci95", "min", "median", "max", "sd"})


def unit(name: str) -> Optional[str]:
    """The unit of a field by its name: `s` of `response_s.p99` and `response_s_p99`, `bit/s` of `throughput_bit_s`; None for counts."""
    base = name.replace(".", "_")
    for end in ("_low", "_high", "_both", "_initiator", "_responder"):
        if base.endswith(end):
            base = base[: -len(end)]
    head, _, last = base.rpartition("_")
    if head and last == "n":
        return None
    if head and (last in _STATISTICS or re.match(r"p[0-9]+\Z", last)):
        base = head
    for end, what in _UNITS:
        if base.endswith(end):
            return what
    return None


class Row(Mapping[str, Any]):
    """A JSON object whose fields are attributes too: `row.response_s.p99` is `row["response_s"]["p99"]`.

    A swept variable is a field of `variables`, and an attribute of the row itself: `row.variables.N`, `row.N`.
    """

    __slots__ = ("_fields",)
    _fields: Mapping[str, Any]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        variables = fields.get("variables")
        if isinstance(variables, Mapping):
            whole = {name: _whole(value) for name, value in variables.items()}
            fields = {**fields, "variables": whole}
        object.__setattr__(self, "_fields", fields)

    def __getitem__(self, name: str) -> Any:
        return _wrapped(self._fields[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __getattr__(self, name: str) -> Any:
        if name in self._fields:
            return _wrapped(self._fields[name])
        variables = self._fields.get("variables")
        if isinstance(variables, Mapping) and name in variables:
            return variables[name]
        raise AttributeError(_unknown(name, self._names()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("the fields of a result cannot be changed")

    def _names(self) -> List[str]:
        variables = self._fields.get("variables")
        return [*self._fields, *(variables if isinstance(variables, Mapping) else ())]

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._names()]

    def __reduce__(self) -> Any:
        return Row, (self._fields,)

    def value(self, path: str) -> Any:
        """The value at a path such as `response_s.p99`, or of a variable; None where something on it is null."""
        value: Any = self
        for part in path.split("."):
            if value is None:
                return None
            if not isinstance(value, Row):
                raise AttributeError(f"`{path}`: there is nothing below `{value}`")
            value = getattr(value, part)
        return value

    def flat(self) -> Dict[str, Any]:
        """The fields as columns of a table: statistics as `response_s_p99`, variables by their names; lists are left out."""
        columns: Dict[str, Any] = {}
        for name, value in self._fields.items():
            if name == "variables":
                columns.update(value or {})
            elif name in ("flags", "caveats") and isinstance(value, list):
                columns[name] = "; ".join(map(str, value))
            else:
                _flatten(name, value, columns)
        return columns

    def __repr__(self) -> str:
        shown = (f"{name}={_short(value)}" for name, value in self._fields.items() if value is not None)
        return f"Row({', '.join(shown)})"


def _whole(value: Any) -> Any:
    """A swept value as an int where it is whole: the specification has `N = 32`."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        if "median" in value and "n" in value:
            return f"<median {value['median']:.6g} of {value['n']}>"
        return "{...}" if value else "{}"
    if isinstance(value, (list, tuple)) and len(value) > 3:
        return "[...]"
    return repr(value)


def _unknown(name: str, names: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, names, 1)
    return f"the row has no field `{name}`" + (f"; did you mean `{near[0]}`?" if near else "")


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Row(value)
    if isinstance(value, list):
        return [_wrapped(one) for one in value]
    return value


def _flatten(name: str, value: Any, columns: Dict[str, Any]) -> None:
    if isinstance(value, Mapping):
        for below, one in value.items():
            _flatten(f"{name}_{below}", one, columns)
    elif name.endswith("ci95") and isinstance(value, list):
        columns[f"{name}_low"], columns[f"{name}_high"] = value
    elif not isinstance(value, list):
        columns[name] = value


class Rows(Sequence[Row]):
    """A list of rows, which also is a table: `columns()`, `frame()` for pandas, `polars()`, `arrow()`."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = [row if isinstance(row, Row) else Row(row) for row in rows]

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Rows: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Row, Rows]:
        if isinstance(index, slice):
            return Rows(self._rows[index])
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def where(self, **fields: Any) -> Rows:
        """The rows with these values: `results.where(stack="tcp", N=64)`."""
        return Rows([row for row in self._rows if all(row.value(name) == value for name, value in fields.items())])

    def values(self, path: str) -> List[Any]:
        """The values of one field: `results.values("response_s.p99")`."""
        return [row.value(path) for row in self._rows]

    def columns(self) -> Dict[str, List[Any]]:
        """All fields as columns of equal length, with None where a row lacks one."""
        flat = [row.flat() for row in self._rows]
        names = dict.fromkeys(name for row in flat for name in row)
        table = {name: [row.get(name) for row in flat] for name in names}
        # Where the statistics of one row are null, the name itself would be a column of nothing.
        whole = {name for name in table if any(other.startswith(name + "_") for other in table)}
        return {name: column for name, column in table.items() if name not in whole or any(v is not None for v in column)}

    def frame(self) -> pandas.DataFrame:
        """A pandas.DataFrame; `frame.attrs["units"]` has the units of columns."""
        try:
            import pandas
        except ImportError:
            raise MissingLibrary("pandas", "pandas") from None
        columns = self.columns()
        frame = pandas.DataFrame(columns)
        frame.attrs["units"] = _units_of(columns)
        return frame

    def polars(self) -> polars.DataFrame:
        """A polars.DataFrame."""
        try:
            import polars
        except ImportError:
            raise MissingLibrary("polars", "polars") from None
        return polars.DataFrame(self.columns(), strict=False, infer_schema_length=None)

    def arrow(self) -> pyarrow.Table:
        """A pyarrow.Table; the metadata of a field has its unit."""
        try:
            import pyarrow
        except ImportError:
            raise MissingLibrary("pyarrow", "arrow") from None
        columns = self.columns()
        units = _units_of(columns)
        arrays, fields = [], []
        for name, column in columns.items():
            # A column with whole and other numbers is one of numbers.
            if any(isinstance(value, float) for value in column):
                column = [None if value is None else float(value) for value in column]
            array = pyarrow.array(column)
            metadata = {"unit": units[name]} if name in units else None
            arrays.append(array)
            fields.append(pyarrow.field(name, array.type, metadata=metadata))
        return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields))

    def __repr__(self) -> str:
        shown = "\n".join(f"  {row!r}" for row in self._rows[:10])
        more = f"\n  and {len(self._rows) - 10} more" if len(self._rows) > 10 else ""
        return f"Rows of {len(self._rows)}:\n{shown}{more}" if self._rows else "Rows of 0"

    def _repr_html_(self) -> str:
        from ._html import table_of_columns

        return table_of_columns(self.columns())


def _units_of(columns: Mapping[str, Any]) -> Dict[str, str]:
    found = {name: unit(name) for name in columns}
    return {name: what for name, what in found.items() if what is not None}


def the_one(rows: Sequence[Row], what: str) -> Row:
    """The only row."""
    if len(rows) != 1:
        raise InputError(f"{what} needs one result, and there are {len(rows)}", "choose one: run.results[0]")
    return rows[0]
