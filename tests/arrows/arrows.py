#!/usr/bin/env python3
"""Arrows between rooms point one way only: every #include of every room is held against the table below. And every
folder that holds a file says in its README.md what it is for.

    arrows.py ROOT         prints each breach as FILE:LINE and exits 1 if there is one
    arrows.py --self-check plants one breach of each kind and fails unless every one is found
"""
import pathlib
import re
import sys
import tempfile

ROOMS = ["base", "models", "profiler", "netmodel", "calibration", "oracle", "comm", "aten", "trainer", "gui"]

# What a place may include of Sibyl besides itself. The longest place that a file lies in decides.
ALLOWED = {
    "base": [],
    "models": ["base"],
    "models/onnx": ["base", "models"],
    "profiler": ["base", "models"],
    "profiler/torch": ["base", "models", "profiler", "aten"],
    "netmodel": ["base"],
    "netmodel/probe": ["base", "netmodel", "comm"],
    "calibration": ["base", "models", "profiler", "netmodel"],
    "oracle": ["base", "models", "profiler", "netmodel", "calibration"],
    "oracle/plan": ["base", "models", "netmodel", "oracle/strategy.h", "oracle/axes.h", "oracle/axis_list.h"],
    "comm": ["base", "netmodel"],
    "aten": ["base", "models"],
    # The trainer runs plans; it predicts nothing.
    "trainer": ["base", "models", "comm", "aten", "oracle/plan", "oracle/strategy.h"],
    "gui": ["base", "models", "profiler", "netmodel", "calibration", "oracle"],
    "gui/model": ["base", "models", "profiler", "netmodel", "calibration", "oracle"],
    "gui/view": ["base", "models", "profiler", "netmodel", "calibration", "oracle", "gui/model"],
    # Programs put the rooms together.
    "calibration/program": ROOMS[:-1],
    "oracle/cli": ROOMS[:-1],
    "trainer/program": ROOMS[:-1],
}

# Libraries that only some places may see: what their includes look like, and those places.
LIBRARIES = {
    "MPI": (r"mpi(_.*)?\.h", ["comm", "netmodel/probe", "calibration", "trainer"]),
    "torch": (r"(torch|ATen|c10|caffe2)/.*", ["aten", "profiler/torch", "trainer", "calibration/program"]),
    "protobuf": (r"(google/protobuf/.*|.*\.pb\.h)", ["models/onnx", "models/zoo"]),
    "ONNX": (r"onnx/.*", ["models/onnx", "models/zoo"]),
    "Qt": (r"(Q[A-Z]\w*|Qt\w+/.*|qcustomplot\.h)", ["gui"]),
    "Qt Widgets": (r"(QtWidgets(/.*)?|qcustomplot\.h|Q(Application|Widget|MainWindow|Splitter|Completer|ToolTip|Shortcut|"
                   r"Style\w*|Frame|Dialog|Label|Menu|Slider|(Table|List|Tree|AbstractItem)View|"
                   r"\w+(Dialog|Widget|Box|Button|Layout|Bar|Edit|Delegate|ScrollArea|Browser|Effect)))",
                   ["gui/view", "gui/app"]),
    "CUDA": (r"(cuda|cudnn|cublas|nccl).*\.h", ["profiler/cudnn", "profiler/torch", "aten", "comm", "trainer"]),
    "JSON": (r"nlohmann/.*", ["calibration", "oracle", "profiler", "trainer"]),
    "YAML": (r"yaml-cpp/.*", ["calibration", "oracle"]),
    "XML": (r"pugixml\.hpp", ["calibration/import"]),
}
NEVER_IN_A_HEADER = ["JSON", "YAML", "XML"]

# Where every folder has a README.md, besides rooms.
OTHERS = ["cmake", "docs", "tests", "tools"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = {".h", ".cpp", ".cu", ".cuh"}


def inside(path, place):
    return path == place or path.startswith(place + "/")


def may_include(path):
    place = max((p for p in ALLOWED if inside(path, p)), key=len)
    return ALLOWED[place] + [place]


def breach(path, bracket, target):
    """What is wrong with this include, or None."""
    if bracket == '"':
        if target.split("/")[0] not in ROOMS:
            return f'"{target}" does not begin with a room: includes are written from the root'
        if not any(inside(target, place) for place in may_include(path)):
            return f'"{target}" is not in {", ".join(sorted(may_include(path)))}'
    for library, (pattern, places) in LIBRARIES.items():
        if bracket == "<" and re.fullmatch(pattern, target):
            if not any(inside(path, place) for place in places):
                return f"<{target}>: {library} is only for {', '.join(places)}"
            if library in NEVER_IN_A_HEADER and path.endswith(".h"):
                return f"<{target}>: no {library} in a header"
    return None


def breaches(root):
    found = []
    for room in ROOMS:
        for file in sorted((root / room).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                include = INCLUDE.match(line)
                problem = include and breach(path, *include.groups())
                if problem:
                    found.append(f"{path}:{number}: {problem}")
    return found


def unexplained(root):
    """Folders with files and without a README.md."""
    folders = {file.parent for place in ROOMS + OTHERS for file in (root / place).rglob("*") if file.is_file()}
    return [f"{folder.relative_to(root).as_posix()}: no README.md says what it is for" for folder in sorted(folders)
            if folder.name != "__pycache__" and not (folder / "README.md").is_file()]


PLANTED = [
    ("base/a.h", '#include "models/graph.h"'),
    ("models/a.cpp", '#include "profiler/kernel_table.h"'),
    ("netmodel/a.cpp", '#include "models/graph.h"'),
    ("netmodel/b.cpp", '#include "comm/communicator.h"'),
    ("profiler/a.cpp", '#include "aten/run_operation.h"'),
    ("oracle/a.cpp", '#include "trainer/train.h"'),
    ("oracle/plan/a.cpp", '#include "oracle/predict.h"'),
    ("trainer/a.cpp", '#include "oracle/predict.h"'),
    ("aten/a.cpp", '#include "comm/communicator.h"'),
    ("oracle/b.cpp", '#include "result.h"'),
    ("oracle/c.cpp", "#include <mpi.h>"),
    ("oracle/d.cpp", "  #  include <torch/torch.h>"),
    ("profiler/b.cpp", "#include <ATen/ATen.h>"),
    ("models/canonical/a.cpp", "#include <onnx/onnx_pb.h>"),
    ("oracle/e.cpp", "#include <google/protobuf/message.h>"),
    ("oracle/f.cpp", "#include <QWidget>"),
    ("gui/model/a.cpp", "#include <QLabel>"),
    ("gui/model/b.h", "#include <QComboBox>"),
    ("gui/model/c.cpp", '#include "gui/view/view.h"'),
    ("gui/view/a.cpp", '#include "gui/app/theme.h"'),
    ("calibration/a.h", "#include <nlohmann/json.hpp>"),
    ("calibration/b.h", "#include <yaml-cpp/yaml.h>"),
    ("oracle/g.cpp", "#include <cuda_runtime.h>"),
    ("calibration/d.cpp", "#include <pugixml.hpp>"),
    ("calibration/import/a.h", "#include <pugixml.hpp>"),
]
CLEAN = [
    ("base/b.cpp", '#include "base/result.h"\n#include <vector>\n#include <fmt/format.h>'),
    ("profiler/torch/a.cpp", '#include "aten/run_operation.h"\n#include <torch/types.h>'),
    ("models/onnx/a.cpp", '#include "models/graph.h"\n#include <onnx/onnx_pb.h>'),
    ("trainer/b.cpp", '#include "oracle/plan/plan.h"\n#include <mpi.h>'),
    ("oracle/cli/main.cpp", '#include "models/zoo/zoo.h"\n#include "trainer/launch.h"'),
    ("netmodel/probe/a.cpp", '#include "comm/communicator.h"'),
    ("calibration/c.cpp", "#include <nlohmann/json.hpp>"),
    ("gui/model/d.cpp", '#include "gui/model/study.h"\n#include <QStringView>\n#include <QUndoStack>'),
    ("gui/view/b.cpp", '#include "gui/model/study.h"\n#include <QLabel>'),
]


def self_check():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in PLANTED + CLEAN:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text + "\n", encoding="utf-8")
        found = {line.split(":")[0] for line in breaches(root)}
        wrong = found ^ {path for path, _ in PLANTED}
        for folder in (root / path for path in ["base", "models", "models/canonical", "tests"]):
            folder.mkdir(exist_ok=True)
            (folder / "README.md").touch()
        silent = {line.split(":")[0] for line in unexplained(root)}
        return sorted(wrong | silent ^ {"aten", "calibration", "calibration/import", "gui/model", "gui/view", "models/onnx", "netmodel", "netmodel/probe", "oracle", "oracle/cli",
                                        "oracle/plan", "profiler", "profiler/torch", "trainer"})


def main():
    if sys.argv[1:] == ["--self-check"]:
        wrong = self_check()
        print("\n".join(f"{path}: judged wrongly" for path in wrong) or f"{len(PLANTED)} planted breaches and the folders without a README.md found")
    elif len(sys.argv) == 2:
        wrong = breaches(pathlib.Path(sys.argv[1])) + unexplained(pathlib.Path(sys.argv[1]))
        print("\n".join(wrong) or "every include follows the arrows, every folder says what it is for")
    else:
        sys.exit(__doc__)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
