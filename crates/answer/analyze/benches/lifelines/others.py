"""The same questions to DuckDB, as a pivot by block, the cheapest of its plans: others.py percentiles|stalls RUN."""

import sys

import duckdb

question, run = sys.argv[1:]
events = f"read_parquet('{run}/events/*.parquet')"
points = ["APP_SEND_REQUEST", "DPSS_MASTER_IN", "DPSS_SERV_IN", "DPSS_START_READ", "DPSS_END_READ", "DPSS_START_WRITE",
          "DPSS_END_WRITE", "APP_RECEIVE"]


def pivot(names, more=""):
    columns = ", ".join(f"min(at_ns) FILTER (keyword = '{name}') AS {name}" for name in names)
    return f"SELECT n1, {columns}{more} FROM {events} WHERE n1 IS NOT NULL GROUP BY n1"


if question == "percentiles":
    segments = list(zip(points, points[1:]))
    columns = ", ".join(f"count({to} - {start}), quantile_cont({to} - {start}, [0.5, 0.99])" for start, to in segments)
    row = duckdb.sql(f"SELECT {columns} FROM ({pivot(points)})").fetchall()[0]
    for (start, to), n, (median, p99) in zip(segments, row[::2], row[1::2]):
        print(f"{start} {to} {n} {median:.2f} {p99:.2f}")
else:
    last = pivot(["DPSS_END_WRITE", "APP_RECEIVE"], ", any_value(n2) AS stream, any_value(n3) AS first, any_value(n4) AS bytes")
    again = f"SELECT at_ns, n2 AS stream, n3 AS first, n4 AS bytes FROM {events} WHERE keyword = 'TCP_RETRANSMIT'"
    print(*duckdb.sql(f"""
        WITH stalls AS (SELECT * FROM ({last}) WHERE APP_RECEIVE - DPSS_END_WRITE > 1000000000), again AS ({again})
        SELECT count(*), count(*) FILTER (EXISTS (
            SELECT 1 FROM again a WHERE a.stream = s.stream AND a.first < s.first + s.bytes AND a.first + a.bytes > s.first
            AND a.at_ns BETWEEN s.DPSS_END_WRITE AND s.APP_RECEIVE)) FROM stalls s""").fetchall()[0])
