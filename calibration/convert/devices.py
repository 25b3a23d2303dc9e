"""Datasheets of the devices whose calibrations are shipped, and which of them were measured by whom. SI units; dense rates.

Sources: NVIDIA's datasheets and architecture whitepapers (Kepler GK210, Maxwell, Pascal GP100/GP102/GP104, Volta, Turing, Ampere GA100 and
GA102, Ada, Hopper, Blackwell), AMD's datasheets and CDNA/Vega whitepapers, Intel ARK. Peaks are at the boost clock of the datasheet; tensor
cores' with f32 accumulation, as training needs it. On GeForce cards and the A10G that is half of what the units could do ("unit_share").
A type without a peak is computed in f32.
Some cards run their kernels at another clock than the stated one, so their peaks are at what they reach. Above it, by their kernels: GTX 1080 Ti
1.91 GHz, TITAN X (Maxwell) 1.19 GHz, RTX 2080 Ti 1.83 (15.9 TFLOP/s of f32 multiply-adds: github.com/ekondis/mixbench, issue 14); in tensor cores, which
need less power at half their rate, RTX 3090 and 4090 1.86 and 2.73 (their quickest bf16 products, 78.0 and 178.8 TFLOP/s: github.com/mag-/gpu_benchmark;
without a load 1.94 and 2.67 by f64 multiply-adds, in f32 36.0 TFLOP/s, the boost clock, on a 3090: github.com/krrishnarraj/clpeak, issues 104 and 106); tf32 is left as stated. Below it: a K80 goes up to 875 MHz, but under products its board meets its power limit. Of two programs that
burn GPUs one runs without being throttled up to 692 MHz and is throttled at 758, the other 745 and 810 (github.com/Microway/gpu-burn, issue 3); 750, the
middle of these, is a choice.
K80's memory has its parity bits in the same GDDR5, 210 of 240 GB/s are left with ECC on, as it is delivered (BabelStream's results: 182 and 205 reached). "At 562 MHz" is the clock that its kernels were timed at.
Memory: a data-centre "80 GB" is 80 GiB; 141, 180 and 186 GB are decimal.
Board power: the data sheets' TDP, TGP or TBP, of a board with two devices half of it; P4 is sold with 50 and 75 W. What products take at the boost clock is on no
data sheet. Of an A100, the same products on boards of different power, with power as the clock's square: f32 products take 1.10 times as long at 250 W as at
300 (NeuSight's, median of 3,321; the square root of 300 / 250 is 1.095), where the quickest tenth reaches 0.944 of the peak, against 0.993 on a V100,
which meets no limit: 332 W for the clock of the peak. In f16 and tf32 a board of 250 W reaches 0.84 and 0.82 of what SXM does (An et al., Fire-Flyer
AI-HPC, SC24, artifact A1): 358 and 375 W. The mean of the three is 355. Runs of a few milliseconds do not meet the limit: the quickest bf16 product
of a board of 300 W reaches 256 TFLOP/s, SXM's 268 (github.com/mag-/gpu_benchmark).
GH200: of the 1,000 W that processor, device and memory may take together, 900 are taken as the device's. B300 and GB300: as many multiprocessors as
B200 and GB200, which no datasheet says.
framework_base and dispatch are on no datasheet. A CUDA context with PyTorch's kernels of about 0.5 GB is an assumption. What a host needs to issue
an operation of eager PyTorch is taken from runs that waited for nothing else, as others measured them (docs/models/step.md, The host): 103 us on a
cloud's host of a T4, 64 on that of a V100, 28 on a desktop with a TITAN RTX; their geometric mean, and a factor of two of error.
spread: GPUs of one name differ in what the same kernels take, by 8 % in the mean of five clusters with V100, RTX 5000 and MI60 (Sinha et al., "Not all GPUs are
created equal", SC22, arXiv:2208.11035: over 90 % of Summit's, Vortex', Longhorn's, Frontera's and Corona's). Taken as the range between the whiskers
of their box plots, which is 5.4 standard deviations of a normal distribution: 1.5 %. Outliers, up to half again as slow, are left out.
"""

import math

GIB = 2**30
FRAMEWORK_BASE = 0.5e9
DISPATCH, DISPATCH_ERROR = 50e-6, 0.6
SPREAD = 0.015


def device(name, architecture, units, peak, bandwidth, memory_gib, cache_mib, power, backend="cuda", boost_power=None, half_rate=False):
    """`units`: streaming multiprocessors (compute units, cores). `power`: of the board, in watts. `half_rate`: tensor cores sum in f32 at half
    their rate."""
    host = backend == "cpu"
    slowed = {"unit_share": {t: 0.5 for t in peak if t not in ("f64", "f32")}} if half_rate else {}
    powers = {"board_power_w": power} | ({"boost_power_w": boost_power} if boost_power else {})
    return {"name": name, "backend": backend, "architecture": architecture, "multiprocessors": units, "peak_flops_per_s": peak,
            **slowed, "memory_bandwidth_bytes_per_s": bandwidth, "memory_bytes": memory_gib * GIB, "cache_bytes": cache_mib * 2**20,
            **powers, "framework_base_bytes": 0.0 if host else FRAMEWORK_BASE, "dispatch_s": 0.0 if host else DISPATCH,
            "dispatch_error": 0.0 if host else DISPATCH_ERROR} | ({} if host else {"spread": SPREAD})


def plain(f32, f64):
    return {"f64": f64, "f32": f32}


def ampere(f64, f32, tf32, half):
    return {"f64": f64, "f32": f32, "tf32": tf32, "f16": half, "bf16": half}


def fp8(f64, f32, tf32, half):
    return ampere(f64, f32, tf32, half) | {"f8e4m3": 2 * half, "f8e5m2": 2 * half}


V100_SXM2 = plain(15.7e12, 7.8e12) | {"f16": 125e12}
V100_PCIE = plain(14e12, 7e12) | {"f16": 112e12}
A100_BOOST = 355
A100 = ampere(9.7e12, 19.5e12, 156e12, 312e12)
H100_SXM = fp8(34e12, 67e12, 494.7e12, 989.4e12)
MI200_GCD = {"f64": 22.6e12, "f32": 45.3e12, "f16": 181e12, "bf16": 181e12}  # f32 on the matrix cores, as rocBLAS computes it
MI300 = fp8(81.7e12, 163.4e12, 653.7e12, 1307.4e12)

# name -> (device, {source: name there})
DEVICES = {
    # Kepler and Maxwell. One GPU of the two on a K80 or M60 board.
    "k80": (device("NVIDIA K80 (one GK210)", "kepler", 13, plain(3.74e12, 1.25e12), 210e9, 12, 1.5, 150), {}),
    "k80-562mhz": (device("NVIDIA K80 (one GK210) at 562 MHz", "kepler", 13, plain(2.806e12, 0.935e12), 210e9, 12, 1.5, 150), {"benanza": "K80"}),
    "gtx-titan-black": (device("NVIDIA GTX TITAN Black", "kepler", 15, plain(5.645e12, 1.88e12), 336e9, 6, 1.5, 250), {"convnet": "Titan Black"}),
    "m40": (device("NVIDIA M40 12GB", "maxwell", 24, plain(6.8e12, 0.21e12), 288e9, 12, 3, 250), {"deepbench": "NV_M40"}),
    "m60": (device("NVIDIA M60 (one GM204)", "maxwell", 16, plain(4.82e12, 0.15e12), 160e9, 8, 2, 150), {}),
    "titan-x-maxwell": (device("NVIDIA TITAN X (Maxwell)", "maxwell", 24, plain(7.31e12, 0.21e12), 336.5e9, 12, 3, 250),
                        {"deepbench": "NV_TitanX"}),
    # Pascal
    "p4": (device("NVIDIA P4", "pascal", 20, plain(5.5e12, 0.17e12), 192e9, 8, 2, 75), {"neusight": "Tesla P4"}),
    "p100-pcie-16gb": (device("NVIDIA P100 PCIe 16GB", "pascal", 56, plain(9.3e12, 4.7e12) | {"f16": 18.7e12}, 732e9, 16, 4, 250),
                       {"neusight": "Tesla P100-PCIE-16GB", "deepbench": "NV_P100"}),
    "p100-sxm2-16gb": (device("NVIDIA P100 SXM2 16GB", "pascal", 56, plain(10.6e12, 5.3e12) | {"f16": 21.2e12}, 732e9, 16, 4, 300), {}),
    "p40": (device("NVIDIA P40", "pascal", 30, plain(11.76e12, 0.37e12), 346e9, 24, 3, 250), {}),
    "titan-x-pascal": (device("NVIDIA TITAN X (Pascal)", "pascal", 28, plain(10.97e12, 0.34e12), 480e9, 12, 3, 250),
                       {"deepbench": "NV_TitanX_Pascal"}),
    "titan-xp": (device("NVIDIA TITAN Xp", "pascal", 30, plain(12.15e12, 0.38e12), 547.6e9, 12, 3, 250), {"deepbench": "NV_TitanXp"}),
    "gtx-1080-ti": (device("NVIDIA GeForce GTX 1080 Ti", "pascal", 28, plain(13.7e12, 0.43e12), 484e9, 11, 2.75, 250),
                    {"deepbench": "NV_1080Ti"}),
    # Volta and Turing
    "v100-pcie-16gb": (device("NVIDIA V100 PCIe 16GB", "volta", 80, V100_PCIE, 900e9, 16, 6, 250), {}),
    "v100-pcie-32gb": (device("NVIDIA V100 PCIe 32GB", "volta", 80, V100_PCIE, 900e9, 32, 6, 250), {"neusight": "Tesla V100-PCIE-32GB"}),
    "v100-sxm2-16gb": (device("NVIDIA V100 SXM2 16GB", "volta", 80, V100_SXM2, 900e9, 16, 6, 300), {"deepbench": "NV_V100", "volumes": "V100", "norms": "V100"}),
    "v100-sxm2-32gb": (device("NVIDIA V100 SXM2 32GB", "volta", 80, V100_SXM2, 900e9, 32, 6, 300), {}),
    "v100-sxm3-32gb": (device("NVIDIA V100 SXM3 32GB", "volta", 80, V100_SXM2, 900e9, 32, 6, 350), {}),
    "v100s-pcie-32gb": (device("NVIDIA V100S PCIe 32GB", "volta", 80, plain(16.35e12, 8.18e12) | {"f16": 130.8e12}, 1134e9, 32, 6, 250),
                        {"separable": "V100S"}),
    "t4": (device("NVIDIA T4", "turing", 40, plain(8.1e12, 0.25e12) | {"f16": 65e12}, 320e9, 16, 4, 70),
           {"neusight": "Tesla T4", "deepbench": "NV_T4"}),
    "quadro-rtx-8000": (device("NVIDIA Quadro RTX 8000", "turing", 72, plain(16.3e12, 0.51e12) | {"f16": 130.5e12}, 672e9, 48, 6, 260), {}),
    "rtx-2080-ti": (device("NVIDIA GeForce RTX 2080 Ti", "turing", 68, plain(15.9e12, 0.5e12) | {"f16": 63.6e12}, 616e9, 11, 5.5, 250, half_rate=True), {}),
    # Ampere
    "a100-sxm-40gb": (device("NVIDIA A100 SXM 40GB", "ampere", 108, A100, 1555e9, 40, 40, 400, boost_power=A100_BOOST), {"volumes": "A100"}),
    "a100-sxm-80gb": (device("NVIDIA A100 SXM 80GB", "ampere", 108, A100, 2039e9, 80, 40, 400, boost_power=A100_BOOST), {"aiconfigurator": "a100_sxm"}),
    "a100-pcie-40gb": (device("NVIDIA A100 PCIe 40GB", "ampere", 108, A100, 1555e9, 40, 40, 250, boost_power=A100_BOOST), {"neusight": "NVIDIA A100-PCIE-40GB"}),
    "a100-pcie-80gb": (device("NVIDIA A100 PCIe 80GB", "ampere", 108, A100, 1935e9, 80, 40, 300, boost_power=A100_BOOST), {"neusight": "NVIDIA A100 80GB PCIe"}),
    "a800-sxm-80gb": (device("NVIDIA A800 SXM 80GB", "ampere", 108, A100, 2039e9, 80, 40, 400, boost_power=A100_BOOST), {}),
    "a30": (device("NVIDIA A30", "ampere", 56, ampere(5.2e12, 10.3e12, 82e12, 165e12), 933e9, 24, 24, 165), {}),
    "a10": (device("NVIDIA A10", "ampere-ga102", 72, ampere(0.49e12, 31.2e12, 62.5e12, 125e12), 600e9, 24, 6, 150), {}),
    "a10g": (device("NVIDIA A10G", "ampere-ga102", 80, ampere(0.49e12, 31.5e12, 35e12, 70e12), 600e9, 24, 6, 300, half_rate=True), {}),
    "a40": (device("NVIDIA A40", "ampere-ga102", 84, ampere(0.58e12, 37.4e12, 74.8e12, 149.7e12), 696e9, 48, 6, 300), {}),
    "rtx-a6000": (device("NVIDIA RTX A6000", "ampere-ga102", 84, ampere(0.6e12, 38.7e12, 77.4e12, 154.8e12), 768e9, 48, 6, 300), {}),
    "rtx-3090": (device("NVIDIA GeForce RTX 3090", "ampere-ga102", 82, ampere(0.56e12, 35.6e12, 35.6e12, 78e12), 936e9, 24, 6, 350, half_rate=True), {}),
    # Ada
    "l4": (device("NVIDIA L4", "ada", 58, fp8(0.47e12, 30.3e12, 60e12, 121e12), 300e9, 24, 48, 72), {"neusight": "NVIDIA L4"}),
    "l40s": (device("NVIDIA L40S", "ada", 142, fp8(1.4e12, 91.6e12, 183e12, 362.05e12), 864e9, 48, 96, 350), {"aiconfigurator": "l40s"}),
    "l40": (device("NVIDIA L40", "ada", 142, fp8(1.4e12, 90.5e12, 90.5e12, 181.05e12), 864e9, 48, 96, 300, half_rate=True), {}),
    "l20": (device("NVIDIA L20", "ada", 92, fp8(0.93e12, 59.8e12, 59.8e12, 119.5e12), 864e9, 48, 96, 275, half_rate=True), {}),
    "rtx-4090": (device("NVIDIA GeForce RTX 4090", "ada", 128, fp8(1.29e12, 82.6e12, 82.6e12, 178.8e12), 1008e9, 24, 72, 450, half_rate=True), {}),
    "rtx-6000-ada": (device("NVIDIA RTX 6000 Ada", "ada", 142, fp8(1.4e12, 91.1e12, 182.1e12, 364.2e12), 960e9, 48, 96, 300), {}),
    # Blackwell of workstations
    "rtx-5090": (device("NVIDIA GeForce RTX 5090", "blackwell-gb202", 170, fp8(1.64e12, 104.8e12, 104.8e12, 209.5e12), 1792e9, 32, 96, 575, half_rate=True), {}),
    "rtx-pro-6000": (device("NVIDIA RTX PRO 6000 Blackwell", "blackwell-gb202", 188, fp8(1.97e12, 126e12, 251.9e12, 503.8e12), 1792e9, 96, 128, 600), {}),
    # Hopper and Blackwell
    "h100-sxm": (device("NVIDIA H100 SXM 80GB", "hopper", 132, H100_SXM, 3350e9, 80, 50, 700),
                 {"aiconfigurator": "h100_sxm", "neusight": "NVIDIA H100 80GB HBM3"}),
    "h100-pcie-80gb": (device("NVIDIA H100 PCIe 80GB", "hopper", 114, fp8(26e12, 51.2e12, 378e12, 756e12), 2039e9, 80, 50, 350), {}),
    "h100-nvl": (device("NVIDIA H100 NVL 94GB", "hopper", 132, fp8(30e12, 60e12, 417.5e12, 835.5e12), 3900e9, 94, 50, 400), {}),
    "h800-sxm": (device("NVIDIA H800 SXM 80GB", "hopper", 132, H100_SXM | {"f64": 1e12}, 3350e9, 80, 50, 700), {}),
    "h20": (device("NVIDIA H20 96GB", "hopper", 78, fp8(1e12, 44e12, 74e12, 148e12), 4000e9, 96, 60, 400), {}),
    "gh200-96gb": (device("NVIDIA GH200 96GB", "hopper", 132, H100_SXM, 4000e9, 96, 50, 900), {}),
    "gh200-144gb": (device("NVIDIA GH200 144GB", "hopper", 132, H100_SXM, 4900e9, 144, 50, 900), {}),
    "h200-sxm": (device("NVIDIA H200 SXM 141GB", "hopper", 132, H100_SXM, 4800e9, 141e9 / GIB, 50, 700), {"aiconfigurator": "h200_sxm"}),
    "b200-sxm": (device("NVIDIA B200 SXM 180GB", "blackwell", 148, fp8(37e12, 75e12, 1125e12, 2250e12), 7700e9, 180e9 / GIB, 126, 1000),
                 {"aiconfigurator": "b200_sxm"}),
    "gb200": (device("NVIDIA GB200 (one GPU)", "blackwell", 152, fp8(40e12, 80e12, 1250e12, 2500e12), 8000e9, 186e9 / GIB, 126, 1200),
              {"aiconfigurator": "gb200"}),
    "b300-sxm": (device("NVIDIA B300 SXM 288GB", "blackwell", 148, fp8(1.2e12, 75e12, 1125e12, 2250e12), 8000e9, 288e9 / GIB, 126, 1100), {}),
    "gb300": (device("NVIDIA GB300 (one GPU)", "blackwell", 152, fp8(1.3e12, 80e12, 1250e12, 2500e12), 8000e9, 288e9 / GIB, 126, 1400), {}),
    # AMD: PyTorch's HIP devices behave as CUDA's do, so they share its backend. MI250 and MI250X: one of the board's two dies.
    "mi25": (device("AMD Radeon Instinct MI25", "gcn5", 64, plain(12.3e12, 0.77e12) | {"f16": 24.6e12}, 484e9, 16, 4, 300),
             {"deepbench": "AMD_MI25"}),
    "vega-fe": (device("AMD Radeon Vega Frontier Edition", "gcn5", 64, plain(13.1e12, 0.82e12) | {"f16": 26.2e12}, 483e9, 16, 4, 300),
                {"deepbench": "AMD_VegaFE"}),
    "mi100": (device("AMD Instinct MI100", "cdna", 120, {"f64": 11.5e12, "f32": 46.1e12, "f16": 184.6e12, "bf16": 92.3e12}, 1228.8e9, 32, 8, 300), {}),
    "mi210": (device("AMD Instinct MI210", "cdna2", 104, MI200_GCD, 1638.4e9, 64, 8, 300), {}),
    "mi250": (device("AMD Instinct MI250 (one GCD)", "cdna2", 104, MI200_GCD, 1638.4e9, 64, 8, 280), {}),
    "mi250x": (device("AMD Instinct MI250X (one GCD)", "cdna2", 110, {"f64": 23.9e12, "f32": 47.9e12, "f16": 191.5e12, "bf16": 191.5e12}, 1638.4e9, 64, 8, 280), {}),
    "mi300x": (device("AMD Instinct MI300X", "cdna3", 304, MI300, 5300e9, 192, 256, 750), {}),
    "mi325x": (device("AMD Instinct MI325X", "cdna3", 304, MI300, 6000e9, 256, 256, 1000), {}),
    # Intel
    "knl-7250": (device("Intel Xeon Phi 7250", "knl", 68, plain(6.09e12, 3.05e12), 450e9, 16, 34, 215, "cpu"),
                 {"deepbench": "IA_KNL7250"}),
}

# By vendor, oldest first: how near two devices are is how far apart their architectures stand here.
LINEAGES = [["kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ampere-ga102", "ada", "hopper", "blackwell"],
            ["gcn5", "cdna", "cdna2", "cdna3"], ["knl"]]
BETWEEN = {"blackwell-gb202": "ada"}  # halfway to the next: its tensor cores are programmed as Ada's are


# Watts of a board that do not last for its boost clock: f32 products on L4 reach 13 of 30 TFLOP/s.
LOW_POWER = 75


def distance(a, b):
    """Between two devices: generations first, whether power throttles one of them, then how far apart bandwidth and f32 peak are."""
    def place(d):
        architecture = BETWEEN.get(d["architecture"], d["architecture"])
        age = 0.5 if architecture != d["architecture"] else 0
        return next((i, lineage.index(architecture) + age) for i, lineage in enumerate(LINEAGES) if architecture in lineage)

    (vendor_a, age_a), (vendor_b, age_b) = place(a), place(b)
    generations = abs(age_a - age_b) if vendor_a == vendor_b else 10
    sizes = abs(math.log2(a["memory_bandwidth_bytes_per_s"] / b["memory_bandwidth_bytes_per_s"]))
    rates = abs(math.log2(a["peak_flops_per_s"]["f32"] / b["peak_flops_per_s"]["f32"]))
    throttled = 3 * ((a["board_power_w"] <= LOW_POWER) != (b["board_power_w"] <= LOW_POWER))
    return generations + throttled + 0.25 * (sizes + rates)


def donors(name, of_each_source=2):
    """The measured devices whose kernels stand in for those that `name` was not measured with: of each source the nearest."""
    own, own_names = DEVICES[name]
    # Kernels of Kepler, and convolutions of volumes, are good for their own generation alone.
    chosen = {n for n, (d, names) in DEVICES.items()
              if n != name and names.keys() & {"convnet", "benanza", "volumes"} and d["architecture"] == own["architecture"]}
    for source in ("aiconfigurator", "neusight", "deepbench", "separable"):
        candidates = [n for n, (d, names) in DEVICES.items() if n != name and source in names and d["backend"] == own["backend"]]
        chosen.update(sorted(candidates, key=lambda n: distance(own, DEVICES[n][0]))[:of_each_source])
    return sorted(chosen, key=lambda n: (distance(own, DEVICES[n][0]), n))
