#!/bin/sh
# Installs the Debian packages that Sibyl builds with; does nothing when all are there.
#
#   tools/setup.sh demo    what predicting needs
#   tools/setup.sh all     that, and what measuring, training, testing and developing need
#   tools/setup.sh gpu     nvcc and cuDNN from Debian's non-free section, where NVIDIA's own are not installed: for
#                          sibyl-calibrate-cudnn, without which all else builds
#   tools/setup.sh list    every package and why
#
# As root or with sudo. The names are those of Debian 12.
set -eu

# GROUP PACKAGE WHY
packages() {
  cat <<'END'
demo g++ the compiler (12 or newer)
demo cmake builds
demo ninja-build builds
demo make the front door: make demo, make test
demo pkg-config finds libraries
demo libfmt-dev text
demo libexpected-dev errors as values
demo libboost-dev Boost headers: the graph, distributions
demo libboost-graph-dev Boost.Graph
demo libprotobuf-dev ONNX files are protobuf
demo protobuf-compiler CMake looks for protoc beside the library
demo libonnx-dev ONNX: the format, operator schemas, shape inference
demo nlohmann-json3-dev calibration files and --json
demo libyaml-cpp-dev cluster files
demo libpugixml-dev topologies of NCCL and hwloc
demo libeigen3-dev fits
demo libjemalloc-dev an allocator for many threads: searches
all ccache compiles once what has not changed
all mold links in a moment
all libopenmpi-dev MPI: measuring networks, training
all openmpi-bin mpirun
all libhwloc-dev what this machine is
all libtorch-dev ATen and autograd: the kernels that training runs
all libopenblas0-openmp the BLAS under libtorch; the reference BLAS is tens of times slower
all libgtest-dev GoogleTest
all libgmock-dev its matchers
all librapidcheck-dev property tests
all libsimgrid-dev an independent judge of how flows share links
all libbenchmark-dev make bench
all qt6-base-dev the desktop: widgets, tests
all qt6-svg-dev exports pictures as SVG
all libgl-dev what Qt's own CMake files look for
all libqcustomplot-dev charts
all qt6-l10n-tools lupdate and lrelease: translations
all fonts-dejavu-core a font for windows that nobody sees
all xvfb windows in tests
all xauth xvfb-run wants it
all iproute2 several hosts on one machine, by network namespaces
all python3 the tests that are scripts
all python3-numpy reads and writes the arrays that tests compare
all python3-onnx makes and checks ONNX files in tests
all python3-torch exports real models in tests
all python3-torchvision the models that it exports
all python3-jsonschema holds calibrations against their schema
all python3-sklearn the digits that a small CNN learns
all clang the sanitizers' preset and the fuzzers
all libclang-rt-14-dev its runtime
all clang-format one style
all clang-tidy the tidy preset
all gcovr reads the coverage preset
gpu nvidia-cuda-toolkit nvcc and cuBLASLt
gpu nvidia-cudnn kernels of GPUs
END
}

die() { echo "setup.sh: $*" >&2; exit 1; }

case ${1-} in
  demo) groups=demo ;;
  all) groups='demo|all' ;;
  gpu) groups=gpu ;;
  list) packages; exit 0 ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

wanted=$(packages | awk -v groups="^($groups)\$" '$1 ~ groups {print $2}')
command -v dpkg-query >/dev/null || die "this is no Debian; install what corresponds to:" $wanted

missing=
for package in $wanted; do
  [ "$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | head -n 1)" = installed ] ||
    missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || die "not root and no sudo; as root, run: apt-get install -y$missing"
  as_root=sudo
fi
echo "setup.sh: installing$missing" >&2
# Twice, for mirrors that fail once in a while.
for attempt in 1 2; do
  if $as_root apt-get update -q >&2 &&
     $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing >&2; then
    exit 0
  fi
done
die "apt-get could not install$missing"
