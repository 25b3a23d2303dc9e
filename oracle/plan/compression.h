// Gradients that travel in another form than they are summed in: which messages carry a bucket, and what its form
// needs. n elements of e bytes, summed over p ranks that each hold all of the sum; docs/compression.md has all numbers.
//
//   fp16, bf16   the bucket is cast, all-reduced in two bytes and cast back (PyTorch's fp16_compress_hook and
//                bf16_compress_hook). Where ranks keep parts of the sum (plan/zero.h) it is reduce-scattered so.
//   1bit, 2bit   levels cannot be summed. So each rank is given its part of everyone's levels (all-to-all), adds
//                what they stand for, turns the sum into levels anew and hands these to all (all-gather):
//                DeepSpeed's compressed_allreduce (Tang et al., "1-bit Adam", ICML 2021, section 4). Parts are of
//                ceil(n / p) elements and begin at bytes; a scale of f32 goes with each. What levels lose is kept
//                and added to the next gradients, by who sends and by who sums. 1bit: the sign; 2bit: -1, 0 or 1
//                (Strom, 2015; MXNet's kvstore).
//   topk:SHARE   the greatest k = SHARE n values, rounded and at least one, with where they stand, all-gathered and
//                added up by everyone; the others are kept and added to the next gradients (Lin et al., "Deep
//                Gradient Compression", ICLR 2018). An index takes 4 bytes; 8 in buckets of 2^31 elements and more.
//
// Parameters that several stages of a pipeline hold are exchanged as they are: once, after backward.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "netmodel/network.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// Fails where there is no such exchange: levels and chosen values of sharded state, two bytes of two bytes.
Result<void> check_compression(const Strategy& strategy);

// After it is known who holds which part (plan/zero.h).
void compress_gradients(Stage& stage, const Strategy& strategy);

// What is sent for a bucket among those who hold all parts, one after the other; `elements` as bytes_sent() takes them.
struct BucketMessage {
  Collective collective = Collective::all_reduce;
  std::int64_t elements = 0;
  DType dtype = DType::f32;
};
std::vector<BucketMessage> bucket_messages(const GradientSync& sync, const Bucket& bucket);
std::string_view exchange_name(const GradientSync& sync);  // "all-reduce", "compressed all-reduce"

// What sums are taken in on their way: of casts two bytes, else the bucket's own type.
DType travelling_type(const GradientSync& sync, const Bucket& bucket);
bool sends_levels(const Compression& compression);
int bits_of_level(const Compression& compression);  // 1 or 2; of levels alone
// Elements of a part of levels: ceil(n / p).
std::int64_t elements_of_part(const GradientSync& sync, const Bucket& bucket);
std::int64_t chosen_values(const GradientSync& sync, const Bucket& bucket);  // k

// Bytes that one rank has for a bucket beside the bucket itself; all 0 where it travels as it is.
struct CompressionMemory {
  std::int64_t residual = 0;  // what was not sent, from step to step
  std::int64_t sent = 0;      // to be sent, and received
  std::int64_t scratch = 0;   // while it is compressed, which buckets are one after the other
};
CompressionMemory compression_memory(const GradientSync& sync, const Bucket& bucket);

}  // namespace sibyl
