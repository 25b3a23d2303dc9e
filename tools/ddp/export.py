#!/usr/bin/python3
"""Writes torchvision's models as ONNX, as torch.onnx exports them for training: export.py FOLDER MODEL...

Files that are there already are kept. The batch is a symbolic dimension; weights are random.
"""

import pathlib
import sys
import warnings

import torch
import torchvision


def export(name, file):
    model = getattr(torchvision.models, name)().train()
    part = file.with_suffix(".part")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            torch.zeros(2, 3, 224, 224),
            str(part),
            opset_version=13,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False,
            input_names=["images"],
            output_names=["logits"],
            dynamic_axes={"images": {0: "batch"}, "logits": {0: "batch"}},
        )
    part.rename(file)


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:]:
        file = folder / f"{name}.onnx"
        if not file.exists():
            export(name, file)


if __name__ == "__main__":
    main()
