"""What was measured: each value, medians, and the ratios of values that were measured one after the other."""

import csv
import json
import statistics
from collections import namedtuple

# topic: a heading of the report. parameter: clients, or "". The native generator's subject is `native`.
Value = namedtuple("Value", "topic measure unit subject parameter round value")
Summary = namedtuple("Summary", "topic measure unit subject parameter rounds median low high ratio ratio_low ratio_high")


class Results:
    def __init__(self, native):
        self.native = native
        self.values = []

    def add(self, topic, measure, unit, subject, parameter, number, value):
        self.values.append(Value(topic, measure, unit, subject, parameter, number, value))

    def series(self, topic, measure, subject, parameter=""):
        """Its values by round."""
        key = (topic, measure, subject, parameter)
        return {v.round: v.value for v in self.values if (v.topic, v.measure, v.subject, v.parameter) == key}

    def median(self, topic, measure, subject, parameter=""):
        return statistics.median(self.series(topic, measure, subject, parameter).values())

    def ratios(self, topic, measure, subject, other, parameter=""):
        """subject / other, round by round: what slows the machine down for a while slows both."""
        mine = self.series(topic, measure, subject, parameter)
        theirs = self.series(topic, measure, other, parameter)
        return [mine[i] / theirs[i] for i in mine if theirs.get(i)]

    def ratio(self, topic, measure, subject, other, parameter=""):
        return statistics.median(self.ratios(topic, measure, subject, other, parameter))

    def summaries(self):
        keys = dict.fromkeys(v[:5] for v in self.values)
        return [self.summary(*key) for key in keys]

    def summary(self, topic, measure, unit, subject, parameter):
        values = list(self.series(topic, measure, subject, parameter).values())
        ratios = self.ratios(topic, measure, subject, self.native, parameter) if subject != self.native else []
        spread = (statistics.median(ratios), *quartiles(ratios)) if ratios else (None, None, None)
        return Summary(topic, measure, unit, subject, parameter, len(values), statistics.median(values),
                       min(values), max(values), *spread)

    def write(self, folder, machine, bounds):
        with open(f"{folder}/values.csv", "w", encoding="utf-8", newline="") as target:
            writer = csv.writer(target)
            writer.writerow(Value._fields)
            writer.writerows(self.values)
        report = {
            "machine": machine,
            "results": [s._asdict() for s in self.summaries()],
            "bounds": [b._asdict() for b in bounds],
        }
        with open(f"{folder}/results.json", "w", encoding="utf-8") as target:
            json.dump(report, target, indent=2)


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
