"""Plots, as SVG by gnuplot."""

import subprocess

from report import number
from rivals import NATIVE

STYLE = """set terminal svg noenhanced size 760,{height} font 'sans-serif,13' background '#ffffff'
set output '{file}'
set border 3 lc rgb '#666666'
set tics nomirror
"""


def write_plots(results, folder):
    bars(results, f"{folder}/bench-time.svg", "ns a key, one session (logarithmic)", "time", "one key", log=True)
    bars(results, f"{folder}/bench-index.svg", "MB of the primary key", "index", "size of the primary key")


def color(subject):
    return "0x1f6feb" if subject == NATIVE.name else "0x9aa4b2"


def bars(results, file, title, topic, measure, log=False):
    summaries = [s for s in results.summaries() if (s.topic, s.measure) == (topic, measure)]
    summaries.sort(key=lambda s: s.median)
    floor = min(s.median for s in summaries) / 2 if log else 0
    data = "\n".join(f'{i} {s.median} "{s.subject}" {color(s.subject)} "{number(s.median)}"' for i, s in enumerate(summaries))
    script = STYLE.format(height=70 + 32 * len(summaries), file=file) + f"""
$data << END
{data}
END
set title '{title}'
set style fill solid
{"set logscale x" if log else ""}
set xrange [{floor if log else 0}:*]
set yrange [{len(summaries) - 0.4}:-0.6]
unset key
plot $data using (0.5*($2+{floor})):0:({floor}):2:($0-0.35):($0+0.35):4:ytic(3) with boxxyerror lc rgb variable, \\
     $data using 2:0:5 with labels left offset 0.5
"""
    draw(script)


def draw(script):
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
