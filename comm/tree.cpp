// Two trees, each carrying half of the vector in chunks: chunks alternate between the trees, first all the way up
// with sums, then down with results. Within one tree messages of a pair keep their order; the two trees may use the
// same pair of ranks in the same direction, and both ends then handle chunks in the same order (by chunk, first tree
// first).
#include <algorithm>
#include <array>

#include "comm/collectives.h"
#include "netmodel/collective/partition.h"

namespace sibyl::comm {
namespace {

using collective::TreePlace;

constexpr std::size_t most_bytes = collective::tree_chunk_bytes;

struct Half {
  Elements data;
  TreePlace place;

  [[nodiscard]] std::size_t chunks() const { return (data.bytes.size() + most_bytes - 1) / most_bytes; }
  [[nodiscard]] std::span<std::byte> chunk(std::size_t index) const {
    const std::size_t begin = index * most_bytes;
    return data.bytes.subspan(begin, std::min(most_bytes, data.bytes.size() - begin));
  }
};

class Pending {
 public:
  Pending(Messages& messages, std::size_t payload) : messages_(messages), bytes_(payload) {}
  void send(std::span<const std::byte> chunk, int to) {
    if (requests_.size() >= limit) finish();
    requests_.push_back(messages_.post_send(chunk, to));
  }
  void finish() {
    messages_.wait(requests_, bytes_);
    requests_.clear();
  }

 private:
  static constexpr std::size_t limit = 16;
  Messages& messages_;
  std::size_t bytes_;
  std::vector<MPI_Request> requests_;
};

void up(const Group& group, const Half& half, std::size_t index, Pending& sends) {
  const Reduce reduce = reduce_of(half.data.type, group.reduction);
  const std::span<std::byte> chunk = half.chunk(index);
  std::array<MPI_Request, 2> receives{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  std::array<std::span<std::byte>, 2> arrived;
  for (std::size_t i = 0; i < 2; ++i) {
    if (half.place.children[i] < 0) continue;
    arrived[i] = group.messages.scratch(chunk.size(), i);
    receives[i] = group.messages.post_receive(arrived[i], half.place.children[i]);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (half.place.children[i] < 0) continue;
    group.messages.wait(receives[i], half.data.bytes.size());
    reduce(chunk, arrived[i]);
  }
  if (half.place.parent >= 0) sends.send(chunk, half.place.parent);
}

void down(const Group& group, const Half& half, std::size_t index, Pending& sends) {
  const std::span<std::byte> chunk = half.chunk(index);
  if (half.place.parent >= 0) {
    MPI_Request request = group.messages.post_receive(chunk, half.place.parent);
    group.messages.wait(request, half.data.bytes.size());
  }
  for (const int child : half.place.children)
    if (child >= 0) sends.send(chunk, child);
}

}  // namespace

void tree_all_reduce(const Group& group, const Elements& data) {
  const std::size_t middle = (data.size() + 1) / 2;
  const std::array<Half, 2> halves{
      Half{data.part(0, middle), TreePlace::of(group.size, group.rank)},
      Half{data.part(middle, data.size() - middle), TreePlace::mirrored(group.size, group.rank)}};
  Pending sends(group.messages, data.bytes.size());
  const std::size_t chunks = halves[0].chunks();
  for (const auto way : {up, down}) {
    for (std::size_t index = 0; index < chunks; ++index)
      for (const Half& half : halves)
        if (index < half.chunks()) way(group, half, index, sends);
    sends.finish();  // on the way down a chunk is received over what was sent up
  }
}

void tree_broadcast(const Group& group, std::span<std::byte> data, int root) {
  const auto actual = [&](int relative) { return relative < 0 ? -1 : (relative + root) % group.size; };
  TreePlace place = TreePlace::of(group.size, (group.rank - root + group.size) % group.size);
  Pending sends(group.messages, data.size());
  for (std::size_t begin = 0; begin < data.size(); begin += most_bytes) {
    const std::span<std::byte> chunk = data.subspan(begin, std::min(most_bytes, data.size() - begin));
    if (place.parent >= 0) {
      MPI_Request request = group.messages.post_receive(chunk, actual(place.parent));
      group.messages.wait(request, data.size());
    }
    for (const int child : place.children)
      if (child >= 0) sends.send(chunk, actual(child));
  }
  sends.finish();
}

}  // namespace sibyl::comm
