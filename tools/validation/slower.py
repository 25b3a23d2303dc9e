#!/usr/bin/env python3
"""A device so many times slower, to be emulated.

    slower.py CALIBRATION TIMES    prints the calibration with every time of its device and kernels that many times as long

Emulated ranks share the processors of one machine, which must hand on all their messages. Where that keeps processors busy, ranks wait
for them as no device of their own would. A slower device on a network of as many times less bandwidth has the same steps, that many
times as long but for latencies, and leaves processors idle. What the file says of a network is left out: that is measured on the slower one.
So is what kernels take while a host's other ranks rest, and out of the cache (`alone_s`, `cached_s`): emulated ranks take as long whether others compute or not.
"""
import json
import sys

OF_THE_NETWORK = ("point_to_point", "pairs", "collectives", "overlap", "meetings", "io")
NOT_EMULATED = ("alone_s", "cached_s")


def slower(value, times, factor=None):
    """What is named _s is a time, what is named _per_s a speed, with all the numbers in it. `factor`: of numbers here."""
    if isinstance(value, list):
        return [slower(one, times, factor) for one in value]
    if isinstance(value, dict):
        return {key: slower(one, times, factor_of(key, times) or factor) for key, one in value.items() if key not in NOT_EMULATED}
    return value * factor if factor and isinstance(value, (int, float)) and not isinstance(value, bool) else value


def factor_of(key, times):
    return 1 / times if key.endswith("_per_s") else times if key.endswith("_s") else None


def refuse(message):
    print(f"slower.py: {message}", file=sys.stderr)
    sys.exit(3)


def read(path):
    try:
        with open(path) as file:
            calibration = json.load(file)
    except (OSError, ValueError) as error:
        refuse(f"{path}: cannot be read: {error}")
    if not isinstance(calibration, dict) or "kernels" not in calibration:
        refuse(f"{path}: is no calibration with kernels that were measured")
    if "kernel_tables" in calibration:
        refuse(f"{path}: has tables of shipped kernels: give a calibration that was measured")
    return calibration


def factor_from(word):
    try:
        times = float(word)
    except ValueError:
        times = 0
    if not 0 < times < float("inf"):
        print(f"slower.py: '{word}' is no number above 0", file=sys.stderr)
        sys.exit(2)
    return times


def main(path, times):
    calibration = read(path)
    print(json.dumps({key: [] if key in OF_THE_NETWORK else value for key, value in slower(calibration, times).items()}))


if __name__ == "__main__":
    if "--help" in sys.argv:
        print(__doc__)
    elif len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    else:
        main(sys.argv[1], factor_from(sys.argv[2]))
