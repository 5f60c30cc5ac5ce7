"""The log into one Parquet file with another engine, as its documentation has it: others.py ENGINE LOG PARQUET."""

import sys

engine, log, parquet = sys.argv[1:]
names = ["keyword", "host", "s", "ns", *(f"d{n}" for n in range(1, 8))]

if engine == "polars":
    import polars as pl

    text = pl.scan_csv(log, separator=";", has_header=False, new_columns=names, truncate_ragged_lines=True,
                       schema_overrides={f"column_{n}": pl.String for n in range(1, 12)})
    number = lambda name: pl.col(name).str.strip_chars(" ").cast(pl.Int64, strict=False)
    text.select(
        (number("s") * 1_000_000_000 + number("ns")).alias("at_ns"),
        pl.col("keyword").cast(pl.Categorical),
        pl.col("host").str.strip_chars(" ").cast(pl.Categorical),
        *(number(f"d{n}").alias(f"n{n}") for n in range(1, 7)),
        pl.col("d7").str.strip_chars(" ").alias("t7"),
    ).sink_parquet(parquet, compression="zstd")
elif engine == "duckdb":
    import duckdb

    columns = "{" + ", ".join(f"'{name}': 'VARCHAR'" for name in names) + "}"
    numbers = ", ".join(f"try_cast(trim(d{n}) AS BIGINT) AS n{n}" for n in range(1, 7))
    duckdb.sql(f"""
        COPY (SELECT s::BIGINT * 1000000000 + ns::BIGINT AS at_ns, keyword, trim(host) AS host, {numbers}, trim(d7) AS t7
              FROM read_csv('{log}', sep = ';', header = false, quote = '', null_padding = true, columns = {columns}))
        TO '{parquet}' (FORMAT parquet, COMPRESSION zstd)""")
