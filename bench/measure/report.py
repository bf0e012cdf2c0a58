"""The report on the terminal; docs/benchmark.md has its medians."""

HEADINGS = {
    "time": "Time of a key, one session",
    "instructions": "Instructions of a key, within its C function",
    "rate": "Keys a second, by clients",
    "pace": "A demand beyond 1024 IDs a millisecond, after the burst",
    "INSERT": "Transactions of one INSERT, by clients",
    "settled": "The settled ID, and INSERTs of 8 clients beside a consumer that asks for it every 5 ms",
    "planned": "An INSERT of one row that is planned each time, one session",
    "bulk": "Many rows at once, with a primary key",
    "WAL": "WAL",
    "index": "The primary key",
    "decoding": "Reading an ID",
    "2,000 shards": "One session, 2,000 shards in random order",
}


def print_report(results, bounds):
    """Median, least and most of the rounds; the last column is the ratio to the native generator, with quartiles."""
    for topic, heading in HEADINGS.items():
        rows = [row_of(s) for s in results.summaries() if s.topic == topic]
        if rows:
            print(f"\n{heading}\n")
            print_table(["", "", "", "median", "min", "max", "/ snowflake"], rows)
    print("\nBounds\n")
    print_table(["", "bound", "measured", ""],
                [[b.text, b.limit, number(b.measured), "holds" if b.holds else "DOES NOT HOLD"] for b in bounds])


def row_of(summary):
    measure = summary.measure + (f", {summary.unit}" if summary.unit else "")
    ratio = ""
    if summary.ratio is not None:
        ratio = number(summary.ratio)
        if summary.rounds > 1:
            ratio += f" ({number(summary.ratio_low)} to {number(summary.ratio_high)})"
    return [measure, str(summary.parameter), summary.subject, *map(number, summary[6:9]), ratio]


def print_table(head, rows):
    """Numbers stand at the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        cells = [cell.rjust(width) if first[:1].isdigit() else cell.ljust(width)
                 for cell, width, first in zip(row, widths, rows[0])]
        print("  ".join(cells).rstrip())


def number(value):
    """Three digits, and all of a whole number."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
