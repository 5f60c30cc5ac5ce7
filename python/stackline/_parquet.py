"""Files of a run in Parquet, for whichever library is there. pyarrow maps them into memory instead of reading them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Sequence

from ._errors import InputError, MissingLibrary

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class ParquetTable:
    """One table in several files: `files` for tools such as DuckDB, `arrow()`, `frame()` for pandas, `polars()`."""

    def __init__(self, files: Sequence[Path], absent: InputError) -> None:
        self._files = list(files)
        self._absent = absent  # What is raised where there is none.

    def __repr__(self) -> str:
        names = ", ".join(path.name for path in self._files if path.is_file())
        return f"<{type(self).__name__} in {names or 'no file'}: .frame() for pandas, .polars(), .arrow(), .files>"

    def __len__(self) -> int:
        """The number of rows."""
        try:
            import pyarrow.parquet
        except ImportError:
            raise MissingLibrary("pyarrow", "arrow") from None
        return sum(pyarrow.parquet.read_metadata(path).num_rows for path in self.files)

    def __iter__(self) -> Iterator[Any]:
        """The rows, each as a dict of its columns."""
        return iter(self.arrow().to_pylist())

    @property
    def files(self) -> List[Path]:
        """The files, all with the same columns."""
        there = [path for path in self._files if path.is_file()]
        if not there:
            raise self._absent
        return there

    def arrow(self, columns: Optional[Sequence[str]] = None) -> pyarrow.Table:
        """A pyarrow.Table of all columns, or of these."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise MissingLibrary("pyarrow", "arrow") from None
        chosen = None if columns is None else list(columns)
        tables = [
            pyarrow.parquet.ParquetFile(path, memory_map=True).read(columns=chosen)
            for path in self.files
        ]
        return pyarrow.concat_tables(tables)

    def frame(self, columns: Optional[Sequence[str]] = None) -> pandas.DataFrame:
        """A pandas.DataFrame of all columns, or of these."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise MissingLibrary("pandas", "pandas") from None
        return self.arrow(columns).to_pandas()

    def polars(self, columns: Optional[Sequence[str]] = None) -> polars.DataFrame:
        """A polars.DataFrame of all columns, or of these."""
        try:
            import polars
        except ImportError:
            raise MissingLibrary("polars", "polars") from None
        chosen = None if columns is None else list(columns)
        return polars.concat([polars.read_parquet(path, columns=chosen) for path in self.files])
