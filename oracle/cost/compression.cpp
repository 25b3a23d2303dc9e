#include "oracle/cost/compression.h"

#include <utility>

#include "oracle/plan/compression.h"
#include "oracle/plan/zero.h"

namespace sibyl {
namespace {

using Kernels = std::vector<KernelKey>;

KernelKey kernel(Attributes attributes, std::vector<Shape> inputs, std::vector<Shape> outputs, DType dtype) {
  return {{std::move(attributes), std::move(inputs), std::move(outputs), dtype}, Pass::forward, 0};
}

KernelKey cast(std::int64_t elements, DType from, DType to) {
  return kernel(Cast{to}, {{elements}}, {{elements}}, from);
}
// By one number.
KernelKey scaled(std::int64_t elements, DType dtype) {
  return kernel(Binary{BinaryKind::mul}, {{elements}, {}}, {{elements}}, dtype);
}
KernelKey both(BinaryKind kind, std::int64_t elements, DType dtype) {
  return kernel(Binary{kind}, {{elements}, {elements}}, {{elements}}, dtype);
}

// As PyTorch's hooks: cast, divided by the ranks, and cast back.
CompressionKernels casting(const GradientSync& sync, const Bucket& bucket) {
  const DType small = travelling_type(sync, bucket);
  const std::int64_t kept = sync.sharded() ? part_of(bucket, sync.parts, 0).size() : bucket.elements;
  return {{cast(bucket.elements, bucket.summed, small), scaled(bucket.elements, small)},
          {cast(kept, small, bucket.summed)}};
}

// Values with what was lost before; how large they are; their levels; what these lose.
void add_levels(std::int64_t elements, DType dtype, Kernels& kernels) {
  const Reduce norm{ReduceKind::l2, {0}, false};
  kernels.push_back(both(BinaryKind::add, elements, dtype));
  kernels.push_back(kernel(norm, {{elements}}, {{}}, dtype));
  kernels.push_back(cast(elements, dtype, DType::u8));
  kernels.push_back(both(BinaryKind::sub, elements, dtype));
}

CompressionKernels levelling(const GradientSync& sync, const Bucket& bucket) {
  const DType dtype = bucket.summed;
  const std::int64_t part = elements_of_part(sync, bucket), ranks = sync.senders, all = part * ranks;
  CompressionKernels kernels;
  add_levels(bucket.elements, dtype, kernels.before);
  // Everyone's levels of the rank's part, summed and turned into levels; then all parts' levels, times their scales.
  kernels.after = {cast(all, DType::u8, dtype),
                   kernel(Reduce{ReduceKind::sum, {0}, false}, {{ranks, part}}, {{part}}, dtype)};
  add_levels(part, dtype, kernels.after);
  kernels.after.push_back(cast(all, DType::u8, dtype));
  kernels.after.push_back(scaled(all, dtype));
  return kernels;
}

// As DGC: what was kept is added, sizes are looked through, and the greatest are taken out, so that they are kept no
// longer. Everyone's values are divided by the ranks and added to zeros where they stand.
CompressionKernels choosing(const GradientSync& sync, const Bucket& bucket) {
  const DType dtype = bucket.summed;
  const std::int64_t all = bucket.elements, chosen = chosen_values(sync, bucket), gathered = chosen * sync.senders;
  const KernelKey take = kernel(Gather{0}, {{all}, {chosen}}, {{chosen}}, dtype);
  KernelKey put = kernel(Gather{0}, {{all}, {gathered}}, {{gathered}}, dtype);
  put.pass = Pass::backward;
  put.gradients = 1;
  return {{both(BinaryKind::add, all, dtype), kernel(Unary{UnaryKind::abs}, {{all}}, {{all}}, dtype),
           kernel(TopK{chosen, true}, {{all}}, {{chosen}, {chosen}}, dtype), take, take},
          {scaled(gathered, dtype), std::move(put)}};
}

}  // namespace

CompressionKernels compression_kernels(const GradientSync& sync, const Bucket& bucket) {
  switch (sync.compression.kind) {
    case Compression::Kind::none: return {};
    case Compression::Kind::fp16:
    case Compression::Kind::bf16: return casting(sync, bucket);
    case Compression::Kind::one_bit:
    case Compression::Kind::two_bit: return levelling(sync, bucket);
    case Compression::Kind::top_k: return choosing(sync, bucket);
  }
  return {};
}

}  // namespace sibyl
