"""Tables: columns kept as Arrow has them, for whichever library is there."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bellwether import _core


class Table:
    """Rows of one run's log, or of many runs.

    Anything that speaks Arrow's C stream interface takes it as it is: ``pyarrow.table(t)``,
    ``polars.from_arrow(t)``, ``duckdb``.
    """

    def __init__(self, core: _core.Table) -> None:
        self._core = core

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self._core.names()

    def __len__(self) -> int:
        return len(self._core)

    def __getitem__(self, name: str) -> list[Any]:
        """A column as a list, ``None`` where there is no value."""
        return self._core.column(name)

    def columns(self) -> dict[str, list[Any]]:
        """All columns as lists."""
        return self._core.columns()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Row by row, as dictionaries."""
        columns = self.columns()
        for row in zip(*columns.values(), strict=True):
            yield dict(zip(columns, row, strict=True))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``; by pyarrow if it is there."""
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            import pandas

            return pandas.DataFrame(self.columns())
        return self.to_arrow().to_pandas()

    def to_csv(self, file: str | PathLike[str]) -> None:
        """Writes a CSV file, as ``bellwether sim --csv`` does."""
        columns = self.columns()
        with open(file, "w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))

    def to_parquet(self, file: str | PathLike[str], **options: Any) -> None:
        """Writes a Parquet file, by pyarrow."""
        import pyarrow.parquet

        pyarrow.parquet.write_table(self.to_arrow(), file, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} rows of {', '.join(self.names)}>"
