#!/usr/bin/env python3
"""Draws servers and their shards, and the moves of a plan, as SVG.

    snowflake-shard list @servers --json | picture.py [plan.json] >servers.svg

A server is a block, a shard a cell in it, coloured by its size as part of the median. A browser shows schema, number
and size of the cell under the pointer. A shard that moves is outlined where it is, and dashed where it goes. plan.json
is the output of "snowflake-shard plan --json". A server without shards is drawn if a shard moves to it.
"""

import html
import json
import math
import re
import statistics
import sys

STYLE = """  text { font-family: sans-serif; font-size: 11px; fill: #1f2328 }
  .title { font-size: 15px; font-weight: bold } .name { font-size: 12px; font-weight: bold }
  .block { fill: #f6f8fa; stroke: #8c959f }
  .s0 { fill: #ffffff; stroke: #b8c0c8; stroke-width: .7 }
  .s1 { fill: #cfe3f5 } .s2 { fill: #9cc7ea } .s3 { fill: #5ba0d8 } .s4 { fill: #2a72b5 } .s5 { fill: #0c3f75 }
  .s4-text, .s5-text { fill: #ffffff }
  .moves { stroke: #e8590c; stroke-width: 2 }
  .comes { fill: none; stroke: #e8590c; stroke-width: 1.2; stroke-dasharray: 2 1.2 }
  .now { fill: #6e7781 } .after { fill: #e8590c }"""
STEPS = (0.1, 0.5, 1, 2, 10)  # sizes as parts of the median; plan counts shards below the first as empty
MARGIN, PADDING, TITLE, NAME, SUM, GAP = 14, 7, 58, 20, 21, 3  # pixels
MOST_WIDE, LEGEND_WIDTH, LEAST_BLOCK = 1500, 800, 130
LABELLED = 300  # so many cells have room for the numbers of shards


def quoted(text):
    """For XML 1.0, which has no control characters, not even as references."""
    return html.escape(re.sub(r"[\0-\x1f]", "?", text))


def pretty(size):
    """As pg_size_pretty()."""
    units = iter(("bytes", "kB", "MB", "GB", "TB"))
    unit = next(units)
    while size >= 10240 and unit != "TB":
        size, unit = size / 1024, next(units)
    return f"{round(size)} {unit}"


def count(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def address(dsn):
    """A connection string of a plan as list writes a server: host:port/dbname."""
    words = re.findall(r"(\w+)=('(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)", dsn)
    values = {key: re.sub(r"\\(.)", r"\1", value[1:-1] if value[:1] == "'" else value) for key, value in words}
    return f"{values['host']}:{values['port']}/{values['dbname']}"


def shortened(name, length):
    """Without the middle: names of servers differ at the beginning, the host, or at the end, the database."""
    half = length // 2
    return name if len(name) <= length else name[:half] + "…" + name[len(name) - (length - half - 1):]


def total(shards):
    return sum(shard["size"] for shard in shards)


class Picture:
    def __init__(self, shards, moves):
        self.body = []
        # The largest first. Citus' shards have no size here.
        self.shards = sorted(({**shard, "size": shard["size"] or 0} for shard in shards),
                             key=lambda shard: (-shard["size"], shard["shard"]))
        self.targets = {move["shard"]: address(move["to"]) for move in moves}
        servers = sorted({shard["server"] for shard in self.shards} | set(self.targets.values()))
        self.blocks = {server: ([shard for shard in self.shards if shard["server"] == server],
                                [shard for shard in self.shards if self.targets.get(shard["shard"]) == server])
                       for server in servers}
        self.median = statistics.median_high([shard["size"] for shard in self.shards if shard["size"]] or [0])
        self.largest = max([1] + [total(shards) for server in servers
                                  for shards in (self.blocks[server][0], self.after(server))])
        self.lay_out()
        self.draw_title()
        for place, server in enumerate(servers):
            self.draw_block(place, server)

    def after(self, server):
        there, coming = self.blocks[server]
        return [shard for shard in there if shard["shard"] not in self.targets] + coming

    def lay_out(self):
        """All blocks are as large as the largest, in about as many columns as rows."""
        blocks = len(self.blocks)
        cells = max([1] + [len(there) + len(coming) for there, coming in self.blocks.values()])
        self.labelled = len(self.shards) + len(self.targets) <= LABELLED
        self.cell = (34, 20) if self.labelled else (10, 10)
        self.columns = max(1, blocks if blocks <= 3 else min(math.ceil(math.sqrt(blocks)), 8))
        room = (MOST_WIDE - MARGIN) // self.columns - MARGIN - 2 * PADDING
        wanted = max(math.ceil(math.sqrt(cells * 2.5)), -(-LEAST_BLOCK // self.cell[0]))
        self.per_line = min(room // self.cell[0], wanted)
        self.header = NAME + SUM * (2 if self.targets else 1)
        self.width = self.per_line * self.cell[0] + 2 * PADDING
        self.height = self.header + -(-cells // self.per_line) * self.cell[1] + 2 * PADDING

    def text(self, x, y, kind, text):
        self.body.append(f'<text x="{x}" y="{y}" class="{kind}">{quoted(text)}</text>')

    def rect(self, x, y, width, height, kind, title=""):
        place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
        end = f"><title>{quoted(title)}</title></rect>" if title else "/>"
        self.body.append(f'<rect {place} class="{kind}"{end}')

    def draw_title(self):
        title = f"{count(len(self.shards), 'shard')} on {count(len(self.blocks), 'server')}, "
        title += pretty(total(self.shards))
        moved = [shard for _, coming in self.blocks.values() for shard in coming]
        if moved:
            title += f"; {count(len(moved), 'move')}, {pretty(total(moved))}"
        self.text(MARGIN, 25, "title", title)
        legend = [(f"s{step}", f"< {pretty(part * self.median)}", 84) for step, part in enumerate(STEPS)]
        legend.append(("s5", f"≥ {pretty(STEPS[-1] * self.median)}", 84))
        legend += ([("s2 moves", "leaves", 62), ("comes", "comes", 62), ("now", "before", 62), ("after", "after", 62)]
                   if self.targets else [("now", "all", 62)])
        x = MARGIN
        for kind, text, width in legend:
            self.rect(x, 38, 12, 12, kind)
            self.text(x + 17, 48, "", text)
            x += width

    def draw_block(self, place, server):
        left = MARGIN + place % self.columns * (self.width + MARGIN)
        top = TITLE + MARGIN // 2 + place // self.columns * (self.height + MARGIN)
        self.rect(left, top, self.width, self.height, "block", server)
        left += PADDING
        self.text(left, top + 16, "name", shortened(server, (self.width - 2 * PADDING) // 8))  # 8 pixels for a letter
        there, coming = self.blocks[server]
        self.draw_sum(left, top + NAME, "now", there)
        if self.targets:
            self.draw_sum(left, top + NAME + SUM, "after", self.after(server))
        for cell, shard in enumerate(there + coming):
            x = left + cell % self.per_line * self.cell[0]
            y = top + self.header + PADDING + cell // self.per_line * self.cell[1]
            self.draw_cell(x, y, shard, cell >= len(there))

    def draw_sum(self, x, y, kind, shards):
        """The bar is as long as the block for the largest size of all servers."""
        size = total(shards)
        self.text(x, y + 10, "", f"{count(len(shards), 'shard')}, {pretty(size)}")
        self.rect(x, y + 14, round(size / self.largest * (self.width - 2 * PADDING)), 4, kind)

    def draw_cell(self, x, y, shard, comes):
        number, size = shard["shard"], shard["size"]
        color = f"s{sum(size >= part * self.median for part in STEPS) if size else 0}"
        kind = "comes" if comes else f"{color} moves" if number in self.targets else color
        title = f"{shard['schema']}, shard {number}, {pretty(size)}"
        self.rect(x, y, self.cell[0] - GAP, self.cell[1] - GAP, kind, title)
        if self.labelled:
            self.text(x + 4, y + 13, "" if comes else f"{color}-text", str(number))

    def document(self):
        width = max(LEGEND_WIDTH, MARGIN + self.columns * (self.width + MARGIN))
        height = TITLE + MARGIN + -(-len(self.blocks) // self.columns) * (self.height + MARGIN)
        size = f'width="{width}" height="{height}"'
        return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}">',
                          f"<style>\n{STYLE}\n</style>", f'<rect {size} rx="8" fill="#ffffff"/>', *self.body, "</svg>"])


def main():
    plan = []
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            plan = json.load(file)
    sys.stdout.reconfigure(encoding="utf-8")
    print(Picture(json.loads(sys.stdin.buffer.read()), plan).document())


main()
