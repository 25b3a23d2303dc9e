"""Datasheets of the devices whose calibrations are shipped. SI units; dense rates.

Peaks, bandwidth and memory: NVIDIA's V100 (2020-01), A100 (2021-06 and 2021-11) and H100 (2023-04) datasheets; last-level cache:
the Volta, Ampere and Hopper architecture whitepapers. The HBM of an "80 GB" part is 80 GiB.
framework_base and dispatch are not on a datasheet and not in the sources: a CUDA context with PyTorch's kernels of about 0.5 GB,
and 5 us of host time per PyTorch operation, are assumptions, and the validation is what judges them.
"""

GIB = 2**30
FRAMEWORK_BASE = 0.5e9
DISPATCH = 5e-6

V100_SXM2 = {"f64": 7.8e12, "f32": 15.7e12, "f16": 125e12}
A100 = {"f64": 9.7e12, "f32": 19.5e12, "tf32": 156e12, "f16": 312e12, "bf16": 312e12}
H100_SXM = {"f64": 34e12, "f32": 67e12, "tf32": 494.7e12, "f16": 989.4e12, "bf16": 989.4e12,
            "f8e4m3": 1978.9e12, "f8e5m2": 1978.9e12}


def device(name, peak, bandwidth, memory_gib, cache_mib):
    return {"name": name, "backend": "cuda", "peak_flops_per_s": peak, "memory_bandwidth_bytes_per_s": bandwidth,
            "memory_bytes": memory_gib * GIB, "cache_bytes": cache_mib * 2**20,
            "framework_base_bytes": FRAMEWORK_BASE, "dispatch_s": DISPATCH}


# name -> (device, names of the device in each source)
DEVICES = {
    "v100-sxm2-16gb": (device("NVIDIA V100 SXM2 16GB", V100_SXM2, 900e9, 16, 6),
                       {"deepbench": "NV_V100", "neusight_memory": "Tesla V100-PCIE-32GB"}),
    "v100-sxm2-32gb": (device("NVIDIA V100 SXM2 32GB", V100_SXM2, 900e9, 32, 6),
                       {"deepbench": "NV_V100", "neusight_memory": "Tesla V100-PCIE-32GB"}),
    "a100-sxm-80gb": (device("NVIDIA A100 SXM 80GB", A100, 2039e9, 80, 40), {"aiconfigurator": "a100_sxm"}),
    "a100-pcie-40gb": (device("NVIDIA A100 PCIe 40GB", A100, 1555e9, 40, 40), {"neusight": "NVIDIA A100-PCIE-40GB"}),
    "a100-pcie-80gb": (device("NVIDIA A100 PCIe 80GB", A100, 1935e9, 80, 40), {"neusight": "NVIDIA A100 80GB PCIe"}),
    "h100-sxm": (device("NVIDIA H100 SXM 80GB", H100_SXM, 3350e9, 80, 50),
                 {"aiconfigurator": "h100_sxm", "neusight": "NVIDIA H100 80GB HBM3"}),
}
