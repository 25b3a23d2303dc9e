#!/usr/bin/env python3
"""Is what a search recommends as fast as anything that can be run?

    search.py cases BIN MODELS CLUSTER RANKS PLAN    searches for each line of MODELS (`MODEL OPTIONS | OPTIONS OF THE SEARCH`), prints
                                                     the cases that `sibyl validate` is to run and writes what was predicted to PLAN
    search.py judge PLAN RESULTS                     a table: regret and rank correlation of each model

Cases of a model are the five strategies predicted to be the fastest, the recommended one, and ten others, drawn with a fixed seed from
those predicted to take at most four times as long. Regret: how much longer the recommended one takes than the fastest of all
that ran. Rank correlation: Spearman's, of predicted and measured times.
"""
import json
import random
import re
import shlex
import subprocess
import sys

BEST, OTHERS, SLOWEST = 5, 10, 4.0


def models(path):
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            work, _, search = line.partition("|")
            yield work.strip(), search.strip()


def strategy_words(candidate):
    """What tells a strategy from others: the end of its command, which begins with --parallel."""
    command = candidate["command"]
    return command[command.index("--parallel"):]


def choose(found, draw):
    best = found["best"]
    chosen = best[:BEST]
    if found["recommended"]["command"] not in [one["command"] for one in chosen]:
        chosen.append(found["recommended"])
    commands = {one["command"] for one in chosen}
    rest = [one for one in best if one["command"] not in commands and one["step_time_s"] <= SLOWEST * best[0]["step_time_s"]]
    return chosen + draw.sample(rest, min(OTHERS, len(rest)))


def cases(binary, path, cluster, ranks, plan_path):
    plan = []
    for work, options in models(path):
        words = [binary, "search", *shlex.split(work), "--cluster", cluster, "--devices", ranks, *shlex.split(options),
                 "--exhaustive", "--keep", "10000", "--json"]
        found = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
        chosen = choose(found, random.Random(work))
        for one in chosen:
            print(f"{work} {strategy_words(one)}")
        plan.append({"work": work, "searched": found["size"], "equal": found["equal"],
                     "recommended": f"{work} {strategy_words(found['recommended'])}",
                     "cases": {f"{work} {strategy_words(one)}": one["step_time_s"] for one in chosen}})
    with open(plan_path, "w") as out:
        json.dump(plan, out, indent=1)


def ranks_of(values):
    """1 for the least; what is equal shares the mean of its ranks."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    result = [0.0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for i in order[begin:end]:
            result[i] = (begin + end + 1) / 2
        begin = end
    return result


def spearman(a, b):
    x, y = ranks_of(a), ranks_of(b)
    mean = (len(x) + 1) / 2
    covariance = sum((p - mean) * (q - mean) for p, q in zip(x, y))
    spread = lambda r: sum((p - mean) ** 2 for p in r)
    return covariance / (spread(x) * spread(y)) ** 0.5 if spread(x) * spread(y) > 0 else 0.0


def judge(plan_path, results_path):
    measured = {re.sub(r" --devices \d+$", "", case["case"]): case["measured_s"] for case in json.load(open(results_path))["cases"]}
    print("| model | strategies | ran | fastest of those that ran | recommended | regret | rank correlation |")
    print("|---|---:|---:|---|---|---:|---:|")
    for one in json.load(open(plan_path)):
        ran = [name for name in one["cases"] if name in measured]
        if one["recommended"] not in ran:
            print(f"| {one['work']} | {one['searched']:,} | {len(ran)} | | the recommended one could not be run | | |")
            continue
        fastest = min(ran, key=lambda name: measured[name])
        words = lambda name: name[len(one["work"]) + 1:].replace("--parallel ", "")
        regret = measured[one["recommended"]] / measured[fastest] - 1
        rho = spearman([one["cases"][name] for name in ran], [measured[name] for name in ran])
        print(f"| {one['work']} | {one['searched']:,} | {len(ran)} | {words(fastest)} | {words(one['recommended'])} | "
              f"{100 * regret:.1f} % | {rho:.2f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["cases"] and len(sys.argv) == 7:
        cases(*sys.argv[2:])
    elif sys.argv[1:2] == ["judge"] and len(sys.argv) == 4:
        judge(*sys.argv[2:])
    else:
        sys.exit(__doc__)
