#!/usr/bin/env python3
"""Sibyl beside Calculon (Isaev et al., SC 2023), another analytical model of training transformers.

    calculon.py make CHECKOUT CSV    runs Calculon (a checkout of github.com/calculon-ai/calculon; needs psutil) over
                                     the options that both have, and writes what it says: times by part, memory by kind
    calculon.py vary CHECKOUT        what Calculon says of published runs with one of its assumptions changed
    calculon.py compare SIBYL CSV [VOCABULARY]
                                     predicts the same with `SIBYL validate --published`, and prints both side by side;
                                     another vocabulary shows what embedding and logits take, which Calculon leaves out

docs/validation/calculon.md says what is compared, and what came out.
"""
import csv
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import types

GIB = 2 ** 30
CAPACITY = 80 * GIB
# What does not fit by Calculon may fit by Sibyl: so much more than a device has is kept.
KEPT = 1.25 * CAPACITY

# name in Calculon: layers, width, heads, feed-forward
MODELS = {"megatron-22B": (48, 6144, 64, 24576), "gpt3-175B": (96, 12288, 96, 49152),
          "turing-530B": (105, 20480, 128, 81920), "megatron-1T": (128, 25600, 160, 102400)}
SEQUENCE, VOCABULARY = 2048, 51200

# model, devices, samples a step; how many times the fastest that fits by Calculon a strategy may take to be kept
SPACES = [("megatron-22B", 8, 4, math.inf), ("gpt3-175B", 64, 64, math.inf), ("turing-530B", 5040, 2520, 1.3)]
# Of those that fit by Calculon, in the order of the space, every so many are taken apart.
EVERY = {"megatron-22B on 8": 30, "gpt3-175B on 64": 16, "turing-530B on 5040": 30}

# Korthikanti et al. 2022, table 5: seconds. batch, micro-batch, pipeline, interleaving
TABLE5 = {"megatron-22B": (8, 4, 4, 1, 1), "gpt3-175B": (64, 64, 1, 8, 3), "turing-530B": (280, 280, 1, 35, 3),
          "megatron-1T": (512, 512, 1, 64, 1)}
MEASURED = {("megatron-22B", "full"): 1.42, ("megatron-22B", "selective"): 1.10, ("gpt3-175B", "full"): 18.13,
            ("gpt3-175B", "selective"): 13.75, ("turing-530B", "full"): 49.05, ("turing-530B", "selective"): 37.83,
            ("megatron-1T", "full"): 94.42, ("megatron-1T", "selective"): 71.49}

PLAN = ["model", "devices", "batch", "tensor", "pipeline", "interleaving", "data", "micro_batch", "recompute",
        "sequence", "zero"]
TIMES = ["forward", "backward", "recompute", "optimizer", "tensor", "links", "gradients", "bubble"]
MEMORY = ["weights", "gradients", "optimizer", "activations"]
SAID = [f"{t}_s" for t in TIMES] + [f"{m}_bytes" for m in MEMORY]  # of those that are taken apart
COLUMNS = ["set", "chosen"] + PLAN + ["step_s", "memory_bytes"] + SAID


def divisors(n):
    return [i for i in range(1, n + 1) if n % i == 0]


def space(model, devices, batch):
    """What both can say. Tensor ranks within a node; interleaved schedules where Megatron-LM has them."""
    layers, width, heads, _ = MODELS[model]
    for tensor in [t for t in divisors(math.gcd(devices, heads)) if t <= 8]:
        for pipeline in [p for p in divisors(devices // tensor) if layers % p == 0]:
            data = devices // tensor // pipeline
            if batch % data:
                continue
            for interleaving in divisors(layers // pipeline) if pipeline > 1 else [1]:
                for recompute, sequence, zero, micro in itertools.product(
                        ["none", "selective", "full"], [0, 1] if tensor > 1 else [0], [0, 1] if data > 1 else [0],
                        divisors(batch // data)):
                    if interleaving > 1 and batch // data // micro % pipeline:
                        continue
                    yield dict(zip(PLAN, (model, devices, batch, tensor, pipeline, interleaving, data, micro, recompute,
                                          sequence, zero)))


def table5():
    for model, (devices, batch, micro, pipeline, interleaving) in TABLE5.items():
        for recompute in ["full", "selective"]:
            yield dict(zip(PLAN, (model, devices, batch, 8, pipeline, interleaving, 1, micro, recompute,
                                  int(recompute == "selective"), 0)))


class Calculon:
    """Of a checkout, unchanged but for its log, which takes most of its time."""

    def __init__(self, checkout):
        for absent in ("pandas",):  # imported, not used
            sys.modules.setdefault(absent, types.ModuleType(absent))
        if not os.path.isdir(os.path.join(checkout, "calculon", "llm")):
            raise FileNotFoundError(f"{checkout}: no checkout of Calculon")
        sys.path.insert(0, checkout)
        import calculon
        self.llm = sys.modules["calculon.llm.llm"]
        self.llm.human_format = lambda *_: ""
        self.log = types.SimpleNamespace(debug=lambda *_: None, info=lambda *_: None)
        read = lambda *path: calculon.io.read_json_file(os.path.join(checkout, *path))
        self.facts = read("systems", "a100_80g.json")
        self.facts["mem1"]["GiB"] = 1e6  # what does not fit is priced, too
        self.set_system = lambda facts: setattr(self, "system", calculon.System(facts))
        self.set_system(self.facts)
        self.models = {name: self.llm.Llm.Application(read("models", name + ".json")) for name in MODELS}

    def run(self, plan, **changed):
        in_node = lambda ranks: 0 if ranks <= 8 else 1
        recompute = {"none": "none", "selective": "attn_only", "full": "full"}[plan["recompute"]]
        execution = self.llm.Llm.Execution.from_json({**{
            "num_procs": plan["devices"], "tensor_par": plan["tensor"], "pipeline_par": plan["pipeline"],
            "data_par": plan["data"], "tensor_par_net": 0, "data_par_net": in_node(plan["tensor"] * plan["data"]),
            "pipeline_par_net": in_node(plan["devices"]), "batch_size": plan["batch"],
            "microbatch_size": plan["micro_batch"], "datatype": "float16", "fused_activation": False,
            "attention_type": "multihead", "activation_recompute": recompute,
            "pipeline_interleaving": plan["interleaving"], "optimizer_sharding": bool(plan["zero"]),
            "tensor_par_comm_type": "rs_ag" if plan["sequence"] else "ar", "tensor_par_overlap": "none",
            "seq_par_ag_redo": bool(plan["sequence"]) and recompute != "full", "data_par_overlap": False,
            "weight_offload": False, "activations_offload": False, "optimizer_offload": False, "training": True},
            **changed})
        llm = self.llm.Llm(self.models[plan["model"]], self.log)
        try:
            llm.compile(self.system, execution)
            llm.run(self.system)
        except self.llm.Llm.Error:
            return None
        return llm


def result(of):
    times = (of.get_fw_time(), of.get_bw_time(), of.get_recompute_time(), of.get_optim_step_time(),
             of.get_tp_comm_exposed_time() + of.get_recomm_exposed_time(), of.get_pp_comm_exposed_time(),
             of.get_dp_comm_exposed_time(), of.get_bubble_time())
    memory = (of.get_weight_space(), of.get_weight_grad_space(), of.get_optimizer_space(),
              of.get_act_space() + of.get_act_checkpoint_size() + of.get_act_grad_space())
    return {"step_s": of.get_total_time(), **{f"{t}_s": v for t, v in zip(TIMES, times)},
            "memory_bytes": of.get_mem_tier1_cap_req(), **{f"{m}_bytes": v for m, v in zip(MEMORY, memory)}}


def run_all(calculon, name, plans, slowest):
    """Rows of the table: of those that are taken apart with all that Calculon says."""
    tried, rows = 0, []
    for plan in plans:
        tried += 1
        of = calculon.run(plan)
        if of is not None and of.get_mem_tier1_cap_req() <= KEPT:
            rows.append({"set": name, "chosen": 0, **plan, **result(of)})
    fitting = [row for row in rows if row["memory_bytes"] <= CAPACITY]
    for row in fitting[::EVERY.get(name, 1)]:
        row["chosen"] = 1
    limit = slowest * min(row["step_s"] for row in fitting)
    kept = [row for row in rows if row["chosen"] or row["step_s"] <= limit]
    print(f"{name}: {tried} strategies, {len(fitting)} fit, {len(kept)} kept, {sum(row['chosen'] for row in kept)} "
          "taken apart", file=sys.stderr)
    for row in kept:
        for column in ["step_s", "memory_bytes"] + SAID:
            row[column] = f"{row[column]:.5g}" if row["chosen"] or column not in SAID else ""
    return kept


def make(checkout, path):
    calculon = Calculon(checkout)
    rows = run_all(calculon, "table 5", table5(), math.inf)
    for model, devices, batch, slowest in SPACES:
        rows += run_all(calculon, f"{model} on {devices}", space(model, devices, batch), slowest)
    with open(path, "w", newline="") as out:
        table = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def vary(checkout):
    """Table 5 by Calculon with one of its assumptions changed: errors in %."""
    calculon = Calculon(checkout)
    layers = sys.modules["calculon.llm.layers"]
    as_they_are = layers.Layer.compute_processing_time
    no_traffic = lambda layer, stage: 0 if isinstance(layer, layers.TPComm) else as_they_are(layer, stage)
    once = json.loads(json.dumps(calculon.facts))
    once["networks"][0]["ops"].update(reduce_scatter=[1.0, -1], all_gather=[1.0, -1])
    plans = list(table5())
    print("| | " + " | ".join(f"{p['model']}, {p['recompute']}" for p in plans) + " | mean |")
    print("|---|" + "---:|" * (len(plans) + 1))

    def line(name, facts=calculon.facts, time=as_they_are, scattered=False, again=True):
        calculon.set_system(facts)
        layers.Layer.compute_processing_time = time
        errors = []
        for plan in plans:
            changed = {"tensor_par_comm_type": "p2p_rs_ag"} if scattered and not plan["sequence"] else {}
            changed.update({} if again else {"seq_par_ag_redo": False})
            measured = MEASURED[plan["model"], plan["recompute"]]
            errors.append(calculon.run(plan, **changed).get_total_time() / measured - 1)
        mean = sum(map(abs, errors)) / len(errors)
        print(f"| {name} | " + " | ".join(percent(1 + e) for e in errors) + f" | {100 * mean:.1f} % |")

    line("as it is")
    line("stages send each other parts, as tensor ranks have them", scattered=True)
    line("reduce-scatter and all-gather together send what an all-reduce sends", facts=once)
    line("what is gathered again costs no time", again=False)
    line("no passes over buffers beside exchanges", time=no_traffic)
    line("all four", once, no_traffic, True, False)


# ---- Sibyl's side


def published(row, vocabulary):
    """As a row of docs/formats/published.md, whose measurement is what Calculon says."""
    layers, width, heads, ffn = MODELS[row["model"]]
    sizes = {"layers": layers, "hidden": width, "heads": heads, "ffn": ffn, "seq": SEQUENCE, "vocab": vocabulary}
    return {"source": "Calculon", "model": row["model"], "arch_params": json.dumps(sizes), "precision": "fp16",
            "framework": "Megatron-LM", "gpu": "A100-SXM-80GB", "n_gpus": row["devices"], "gpus_per_node": 8,
            "intranode": "NVLink3+NVSwitch", "internode": "IB HDR 8x200Gb/s per node", "global_batch": row["batch"],
            "micro_batch": row["micro_batch"], "dp": row["data"], "tp": row["tensor"], "pp": row["pipeline"],
            "vpp": row["interleaving"], "sp": row["sequence"], "zero": row["zero"], "recompute": row["recompute"],
            "metric": "iteration_time", "value": row["step_s"], "unit": "s"}


def priced(sibyl, rows, vocabulary):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.csv")
        said = [published(row, vocabulary) for row in rows]
        with open(path, "w", newline="") as out:
            table = csv.DictWriter(out, said[0])
            table.writeheader()
            table.writerows(said)
        done = subprocess.run([sibyl, "validate", "--published", path, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["rows"]


def parts(said):
    """Of the prediction in Calculon's terms. What of the communication is which stands among its limits."""
    waits = {}
    for limit in said["limits"]:
        if limit["unit"] == "s":
            waits[limit["name"]] = waits.get(limit["name"], 0) + limit["value"]
    spent, again = said["breakdown_s"], waits.get("recomputation", 0)
    return {"forward": spent["forward"], "backward": spent["backward"] - again, "recompute": again,
            "optimizer": spent["optimizer"] + waits.get("norms of gradients", 0),
            "tensor": waits.get("layer-wise collectives", 0), "links": waits.get("pipeline links", 0),
            "gradients": waits.get("gradient exchange", 0), "bubble": spent["bubble"]}


def words(row):
    text = f"t{row['tensor']} p{row['pipeline']}"
    text += f"x{row['interleaving']}" if row["interleaving"] != "1" else ""
    text += f" d{row['data']} mb{row['micro_batch']} {row['recompute']}"
    return text + (" seq" if row["sequence"] == "1" else "") + (" zero1" if row["zero"] == "1" else "")


def percent(ratio):
    return f"{100 * (ratio - 1):+.1f} %"


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def ranks_of(values):
    """1 for the least. Ties are broken by place: times have too many digits to be equal by chance."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    return [rank for rank, _ in sorted(enumerate(order, 1), key=lambda pair: pair[1])]


def spearman(a, b):
    x, y = ranks_of(a), ranks_of(b)
    return 1 - 6 * sum((p - q) ** 2 for p, q in zip(x, y)) / (len(x) * (len(x) ** 2 - 1))


STEP = {"Sibyl": lambda row: row["said"]["step_time_s"], "Calculon": lambda row: float(row["step_s"])}
BYTES = {"Sibyl": lambda row: row["said"]["memory_bytes"]["total"], "Calculon": lambda row: float(row["memory_bytes"])}
FITS = {"Sibyl": lambda row: row["said"]["fits"], "Calculon": lambda row: float(row["memory_bytes"]) <= CAPACITY}


def ratio(row):
    return STEP["Sibyl"](row) / STEP["Calculon"](row)


def print_table5(rows):
    print("| | measured | Sibyl | | Calculon | |\n|---|---:|---:|---:|---:|---:|")
    errors = {name: [] for name in STEP}
    for row in rows:
        measured = MEASURED[row["model"], row["recompute"]]
        for name in STEP:
            errors[name].append(STEP[name](row) / measured - 1)
        cells = [f"{STEP[name](row):.2f} s | {percent(1 + errors[name][-1])}" for name in STEP]
        print(f"| {row['model']}, {row['recompute']} | {measured} s | {' | '.join(cells)} |")
    for name, of in errors.items():
        mean, most = sum(map(abs, of)) / len(of), max(map(abs, of))
        print(f"\n{name}: {100 * mean:.1f} % in the mean, {100 * most:.1f} % at most.")


def print_parts(rows):
    print("| strategy | Sibyl s | Calculon s | | " + " | ".join(TIMES) + " | memory GiB |")
    print("|---|---:|---:|---:|" + "---:|" * len(TIMES) + "---:|")
    for row in rows:
        own = parts(row["said"])
        cells = [f"{STEP[name](row):.2f}" for name in STEP] + [percent(ratio(row))]
        cells += [f"{own[t]:.2f} {float(row[t + '_s']):.2f}" for t in TIMES]
        cells.append(" ".join(f"{BYTES[name](row) / GIB:.1f}" for name in BYTES))
        print(f"| {words(row)} | {' | '.join(cells)} |")


def print_whole(rows):
    """Of a space: how far apart, and whether in the same order."""
    verdicts = [(FITS["Sibyl"](row), FITS["Calculon"](row)) for row in rows]
    both = [row for row, verdict in zip(rows, verdicts) if all(verdict)]
    ratios = [ratio(row) for row in both]
    apart = [abs(r - 1) for r in ratios]
    far = sum(a > 0.05 for a in apart) / len(apart)
    order = spearman([STEP["Sibyl"](row) for row in both], [STEP["Calculon"](row) for row in both])
    print(f"{len(both)} fit by both, {verdicts.count((True, False))} by Sibyl alone, {verdicts.count((False, True))} "
          f"by Calculon alone. Sibyl's times over Calculon's: {percent(quantile(ratios, 0.5))} in the median, from "
          f"{percent(min(ratios))} to {percent(max(ratios))}; apart by {100 * quantile(apart, 0.5):.1f} % in the "
          f"median, {100 * quantile(apart, 0.9):.1f} % at the 90 % quantile, by more than 5 % in {100 * far:.0f} % of "
          f"them. Rank correlation {order:.3f}.")


def print_shares(rows):
    """Of those taken apart: Sibyl's part less Calculon's, of Calculon's step."""
    print("| |" + " | ".join(TIMES) + " | step |\n|---|" + "---:|" * (len(TIMES) + 1))
    share = lambda row, t: (parts(row["said"])[t] - float(row[t + "_s"])) / STEP["Calculon"](row)
    shares = [[share(row, t) for row in rows] for t in TIMES] + [[ratio(row) - 1 for row in rows]]
    for name, of in (("mean", lambda v: sum(v) / len(v)), ("least", min), ("most", max)):
        print(f"| {name} | " + " | ".join(percent(1 + of(v)) for v in shares) + " |")


def print_best(rows):
    """The five fastest of each, and what the other says of them."""
    print("| strategy |" + "".join(f" {name} s | its place | GiB |" for name in STEP) + "\n|---|" + "---:|" * 6)
    order = {name: sorted(filter(FITS[name], rows), key=STEP[name]) for name in STEP}
    place = {name: {id(row): n for n, row in enumerate(of, 1)} for name, of in order.items()}
    best = {id(row): row for of in order.values() for row in of[:5]}
    for row in sorted(best.values(), key=STEP["Sibyl"]):
        cells = [f"{STEP[name](row):.2f} | {place[name].get(id(row), 'does not fit')} | {BYTES[name](row) / GIB:.1f}"
                 for name in STEP]
        print(f"| {words(row)} | {' | '.join(cells)} |")


def compare(sibyl, path, vocabulary=VOCABULARY):
    rows = list(csv.DictReader(open(path)))
    for name in dict.fromkeys(row["set"] for row in rows):
        of = [row for row in rows if row["set"] == name]
        for row, said in zip(of, priced(sibyl, of, int(vocabulary))):
            row["said"] = said
        for reason in {row["said"]["not_priced"] for row in of if "not_priced" in row["said"]}:
            print(f"{name}: not priced: {reason}", file=sys.stderr)
        of = [row for row in of if "not_priced" not in row["said"]]
        print(f"\n## {name}\n")
        if name == "table 5":
            print_table5(of)
            print()
        else:
            print_whole(of)
            print()
            print_best(of)
            print()
        chosen = [row for row in of if row["chosen"] == "1"]
        print_parts(chosen)
        print()
        print_shares(chosen)


def main(words):
    if words[:1] == ["make"] and len(words) == 3:
        make(*words[1:])
    elif words[:1] == ["vary"] and len(words) == 2:
        vary(words[1])
    elif words[:1] == ["compare"] and len(words) in (3, 4):
        compare(*words[1:])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, ModuleNotFoundError) as error:
        print(f"calculon.py: {error}", file=sys.stderr)
        sys.exit(3)
