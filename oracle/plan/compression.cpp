#include "oracle/plan/compression.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/plan/precision.h"

namespace sibyl {
namespace {

using Kind = Compression::Kind;

bool casts(const Compression& compression) { return compression.kind == Kind::fp16 || compression.kind == Kind::bf16; }

std::int64_t width(DType type) { return static_cast<std::int64_t>(size_in_bytes(type)); }

// Its levels, from a byte on, and its scale.
std::int64_t bytes_of_part(const GradientSync& sync, const Bucket& bucket) {
  const std::int64_t bits = elements_of_part(sync, bucket) * bits_of_level(sync.compression);
  return (bits + 7) / 8 + width(DType::f32);
}

std::int64_t bytes_of_chosen(const GradientSync& sync, const Bucket& bucket) {
  const bool many = bucket.elements > std::numeric_limits<std::int32_t>::max();
  return chosen_values(sync, bucket) * (width(bucket.summed) + width(many ? DType::i64 : DType::i32));
}

}  // namespace

Result<void> check_compression(const Strategy& strategy) {
  const Compression& compression = strategy.compression;
  if (compression.kind == Kind::none) return {};
  const std::string where = "--compress " + compression_text(compression);
  if (casts(compression) && has_half_weights(strategy) && !strategy.fp32_gradients)
    return fail(ErrorCode::infeasible, "gradients of two bytes are not made smaller by a cast to two bytes", where,
                "leave out --compress, or give --fp32-gradients");
  const bool shares = strategy.zero > 0 && strategy.data * strategy.samplers() > 1;
  if (shares && !casts(compression))
    return fail(ErrorCode::infeasible,
                "ranks that share state keep parts of sums, and so compressed gradients are summed whole", where,
                "--zero 0; or --compress fp16 or bf16, of which parts can be summed");
  return {};
}

void compress_gradients(Stage& stage, const Strategy& strategy) {
  for (GradientSync& sync : stage.gradients) {
    if (!sync.stages.empty()) continue;
    sync.compression = strategy.compression;
    for (const MeshAxis axis : sync.axes) sync.senders *= strategy.degree(axis);
  }
}

std::vector<BucketMessage> bucket_messages(const GradientSync& sync, const Bucket& bucket) {
  if (sends_levels(sync.compression)) {
    const std::int64_t bytes = sync.senders * bytes_of_part(sync, bucket);
    return {{Collective::all_to_all, bytes, DType::u8}, {Collective::all_gather, bytes, DType::u8}};
  }
  if (sync.compression.kind == Kind::top_k)
    return {{Collective::all_gather, sync.senders * bytes_of_chosen(sync, bucket), DType::u8}};
  return {{sync.sharded() ? Collective::reduce_scatter : Collective::all_reduce, bucket.elements,
           travelling_type(sync, bucket)}};
}

std::string_view exchange_name(const GradientSync& sync) {
  if (sends_levels(sync.compression)) return "compressed all-reduce";
  if (sync.compression.kind == Kind::top_k) return "all-gather";
  return sync.sharded() ? "reduce-scatter" : "all-reduce";
}

DType travelling_type(const GradientSync& sync, const Bucket& bucket) {
  switch (sync.compression.kind) {
    case Kind::fp16: return DType::f16;
    case Kind::bf16: return DType::bf16;
    default: return bucket.summed;
  }
}

bool sends_levels(const Compression& compression) {
  return compression.kind == Kind::one_bit || compression.kind == Kind::two_bit;
}

int bits_of_level(const Compression& compression) { return compression.kind == Kind::one_bit ? 1 : 2; }

std::int64_t elements_of_part(const GradientSync& sync, const Bucket& bucket) {
  return (bucket.elements + sync.senders - 1) / sync.senders;
}

std::int64_t chosen_values(const GradientSync& sync, const Bucket& bucket) {
  const std::int64_t rounded = std::llround(sync.compression.share * static_cast<double>(bucket.elements));
  return std::clamp<std::int64_t>(rounded, 1, bucket.elements);
}

CompressionMemory compression_memory(const GradientSync& sync, const Bucket& bucket) {
  const Compression& compression = sync.compression;
  if (compression.kind == Kind::none) return {};
  if (casts(compression)) return {0, bucket.elements * width(travelling_type(sync, bucket)), 0};
  if (compression.kind == Kind::top_k) {
    const std::int64_t own = bytes_of_chosen(sync, bucket);
    return {bucket.bytes(), own * (1 + sync.senders), bucket.bytes()};  // their sizes without signs are looked through
  }
  const std::int64_t lost = (bucket.elements + elements_of_part(sync, bucket)) * width(bucket.summed);
  const std::int64_t unpacked = bucket.elements;  // a byte for each level
  return {lost, 2 * sync.senders * bytes_of_part(sync, bucket), unpacked};
}

}  // namespace sibyl
