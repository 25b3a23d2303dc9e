// The algorithms, over Messages. Ranks are those of the group. Partitions and partners are those of
// netmodel/collective/partition.h, and so are the bytes.
#pragma once

#include <span>

#include "comm/communicator.h"
#include "comm/elements.h"
#include "comm/messages.h"

namespace sibyl::comm {

// target += source, or the greater of the two, element by element. Sums of two-byte numbers are taken in f32 and
// rounded to their type each time: they travel in it.
using Reduce = void (*)(std::span<std::byte> target, std::span<const std::byte> source);
Reduce reduce_of(Element type, Reduction reduction);

struct Group {
  Messages& messages;
  int rank = 0;
  int size = 1;
  Reduction reduction = Reduction::sum;
};

void ring_reduce_scatter(const Group& group, const Elements& data);
// Of elements of `width` bytes each.
void ring_all_gather(const Group& group, std::span<std::byte> data, std::size_t width);
void recursive_doubling_all_reduce(const Group& group, const Elements& data);
void rabenseifner_all_reduce(const Group& group, const Elements& data);
void tree_all_reduce(const Group& group, const Elements& data);
void tree_broadcast(const Group& group, std::span<std::byte> data, int root);
void tree_reduce(const Group& group, const Elements& data, int root);

}  // namespace sibyl::comm
