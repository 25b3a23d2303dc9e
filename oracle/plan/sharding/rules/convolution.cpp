// By filters (columns), by channels (rows), by groups, or by rows of the image with a halo (Dryden et al., "Improving
// strong-scaling of CNN training by exploiting finer-grained parallelism", 2019).
#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl::sharding {
namespace {

// A weight is [K, C/groups, …]; a transposed convolution's is [C, K/groups, …].
std::size_t filters_of_weight(const Convolution& op) { return op.transposed ? 1 : 0; }

Layout arriving_channels(const Operands& o) {
  const Layout* arriving = o.split(0);
  return arriving && arriving->dim == channels ? *arriving : Layout::split(channels);
}

Variant by_filters(const Convolution& op, const Operands& o) {
  const Ints& pieces = o.column_pieces;
  Variant v{{shared(), split(filters_of_weight(op), pieces)}, {Layout::split(channels, pieces)}, op, Cut::columns};
  if (o.has(2)) v.inputs.push_back(split(0, pieces));
  return v;
}

Variant by_channels(const Convolution& op, const Operands& o) {
  const Layout in = arriving_channels(o);
  Variant v{{{in, false, {}}, split(1 - filters_of_weight(op), in.pieces)}, {Layout::partial(channels)}, op, Cut::rows};
  if (o.has(2)) v.late_bias = 2, v.inputs.push_back(whole());
  return v;
}

// Each group has its own channels and filters: nothing is exchanged. A weight's groups lie along dimension 0 either
// way.
Variant by_groups(const Convolution& op, const Operands& o) {
  Convolution local = op;
  local.groups /= o.ways;
  Variant v{{split(channels), split(0)}, {Layout::split(channels)}, local, Cut::groups};
  if (o.has(2)) v.inputs.push_back(split(0));
  return v;
}

// Along a split dimension of the image: what a rank needs beside its own rows, and how the local operation pads.
struct PartOfImage {
  Halo halo;
  std::int64_t pad_begin = 0, pad_end = 0;
};

std::optional<PartOfImage> part_of_image(const Convolution& op, const Window& window, std::int64_t input,
                                         std::int64_t output, std::int64_t ways) {
  const std::optional<Halo> halo =
      op.transposed ? halo_of_transposed(window, input, output, ways) : halo_of(window, input, output, ways, 0.0);
  if (!halo) return std::nullopt;
  if (!op.transposed) return PartOfImage{*halo};  // the halo holds the padding
  // The first row, of the halo, begins `before` strides ahead of the own results; with the last one's the local results
  // are (own + before + after - 1) stride + (kernel - 1) dilation + 1. What is not the rank's own is cropped.
  const std::int64_t begin = halo->before * window.stride + window.pad_begin;
  const std::int64_t end =
      (halo->after - 1) * window.stride + (window.kernel - 1) * window.dilation + 1 - window.pad_begin;
  if (end < 0) return std::nullopt;
  return PartOfImage{*halo, begin, end};
}

std::optional<Variant> along(const Convolution& op, const Operands& o, std::size_t dim) {
  const std::size_t i = dim - 2;
  const Window window{op.kernel[i], op.stride[i], op.dilation[i], op.pad_begin[i], op.pad_end[i]};
  const std::optional<PartOfImage> part = part_of_image(op, window, o.inputs[0][dim], o.outputs[0][dim], o.ways);
  if (!part) return std::nullopt;
  Convolution local = op;
  local.pad_begin[i] = part->pad_begin;
  local.pad_end[i] = part->pad_end;
  if (!local.output_pad.empty()) local.output_pad[i] = 0;
  Variant v{{{Layout::split(dim), false, part->halo}, shared()}, {Layout::split(dim)}, local, Cut::along};
  if (o.has(2)) v.inputs.push_back(shared());
  return v;
}

}  // namespace

Variants variants(const Convolution& op, const Operands& o) {
  Variants result;
  if (op.groups > 1 && op.groups % o.ways == 0) result.push_back(by_groups(op, o));
  if (op.groups == 1) {
    result.push_back(by_filters(op, o));
    result.push_back(by_channels(op, o));
  }
  for (std::size_t dim = 2; dim < o.inputs.at(0).size(); ++dim)
    if (auto v = along(op, o, dim)) result.push_back(std::move(*v));
  return result;
}

}  // namespace sibyl::sharding
