// The algorithms, over Messages. Ranks are those of the group; what is reduced is f32. Partitions and partners are those of
// netmodel/collective/partition.h, and so are the bytes.
#pragma once

#include <span>

#include "comm/messages.h"

namespace sibyl::comm {

// target += source; target = the greater of the two
void add(std::span<float> target, std::span<const std::byte> source);
void keep_greater(std::span<float> target, std::span<const std::byte> source);

struct Group {
  Messages& messages;
  int rank = 0;
  int size = 1;
  void (*reduce)(std::span<float> target, std::span<const std::byte> source) = add;
};

void ring_reduce_scatter(const Group& group, std::span<float> data);
// Of elements of `width` bytes each.
void ring_all_gather(const Group& group, std::span<std::byte> data, std::size_t width);
void recursive_doubling_all_reduce(const Group& group, std::span<float> data);
void rabenseifner_all_reduce(const Group& group, std::span<float> data);
void tree_all_reduce(const Group& group, std::span<float> data);
void tree_broadcast(const Group& group, std::span<std::byte> data, int root);

}  // namespace sibyl::comm
