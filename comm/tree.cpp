// Two trees, each carrying half of the vector in chunks: chunks alternate between the trees, first all the way up
// with sums, then down with results. Within one tree messages of a pair keep their order; those of the two trees, which
// may use the same pair of ranks in the same direction, have lanes of their own.
//
// Receives are posted some chunks ahead: a rank of one tree waits for chunks that wait for others' in the other tree,
// and meanwhile its own are on their way. One at a time, trees took three times as long as their links.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

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

int lane_of(std::size_t half) { return static_cast<int>(half); }

class Pending {
 public:
  Pending(Messages& messages, std::size_t payload) : messages_(messages), bytes_(payload) {}
  void send(std::span<const std::byte> chunk, int to, int lane = 0) {
    if (requests_.size() >= limit) finish();
    requests_.push_back(messages_.post_send(chunk, to, Messages::Done::handed_over, lane));
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

// Chunks from one rank, in order.
class Arrivals {
 public:
  static constexpr std::size_t ahead = 8;
  // Where chunk i goes; the place of chunk i - `ahead` may be taken again.
  using Place = std::function<std::span<std::byte>(std::size_t)>;

  Arrivals(Messages& messages, const Half& half, int from, int lane, Place place)
      : messages_(messages),
        chunks_(half.chunks()),
        bytes_(half.data.bytes.size()),
        from_(from),
        lane_(lane),
        place_(std::move(place)) {
    for (std::size_t i = 0; i < std::min(ahead, chunks_); ++i) post(i);
  }

  // The next one, until it is asked for again.
  std::span<std::byte> next() {
    if (taken_ > 0 && taken_ - 1 + ahead < chunks_) post(taken_ - 1 + ahead);
    messages_.wait(requests_[taken_ % ahead], bytes_);
    return place_(taken_++);
  }

 private:
  void post(std::size_t index) { requests_[index % ahead] = messages_.post_receive(place_(index), from_, lane_); }

  Messages& messages_;
  std::size_t chunks_, bytes_, taken_ = 0;
  int from_, lane_;
  Place place_;
  std::array<MPI_Request, ahead> requests_{};
};

using Halves = std::array<Half, 2>;

// Calls visit(which half, chunk) in the order in which all ranks take them.
template <class Visit>
void by_chunk(const Halves& halves, const Visit& visit) {
  for (std::size_t index = 0; index < halves[0].chunks(); ++index)
    for (std::size_t h = 0; h < halves.size(); ++h)
      if (index < halves[h].chunks()) visit(h, index);
}

void up(const Group& group, const Halves& halves, Pending& sends) {
  std::array<std::vector<Arrivals>, 2> from_children;
  std::size_t slot = 0;
  for (std::size_t h = 0; h < halves.size(); ++h)
    for (const int child : halves[h].place.children) {
      if (child < 0) continue;
      const Half& half = halves[h];
      const auto scratch = group.messages.scratch(Arrivals::ahead * most_bytes, slot++);
      from_children[h].emplace_back(group.messages, half, child, lane_of(h), [&half, scratch](std::size_t index) {
        return scratch.subspan(index % Arrivals::ahead * most_bytes, half.chunk(index).size());
      });
    }
  by_chunk(halves, [&](std::size_t h, std::size_t index) {
    const Half& half = halves[h];
    const Reduce reduce = reduce_of(half.data.type, group.reduction);
    for (Arrivals& arrivals : from_children[h]) reduce(half.chunk(index), arrivals.next());
    if (half.place.parent >= 0) sends.send(half.chunk(index), half.place.parent, lane_of(h));
  });
  sends.finish();  // on the way down a chunk is received over what was sent up
}

void down(const Group& group, const Halves& halves, Pending& sends) {
  std::array<std::optional<Arrivals>, 2> from_parent;
  for (std::size_t h = 0; h < halves.size(); ++h)
    if (const Half& half = halves[h]; half.place.parent >= 0)
      from_parent[h].emplace(group.messages, half, half.place.parent, lane_of(h),
                             [&half](std::size_t index) { return half.chunk(index); });
  by_chunk(halves, [&](std::size_t h, std::size_t index) {
    if (from_parent[h]) from_parent[h]->next();
    for (const int child : halves[h].place.children)
      if (child >= 0) sends.send(halves[h].chunk(index), child, lane_of(h));
  });
  sends.finish();
}

}  // namespace

void tree_all_reduce(const Group& group, const Elements& data) {
  const std::size_t middle = (data.size() + 1) / 2;
  const Halves halves{Half{data.part(0, middle), TreePlace::of(group.size, group.rank)},
                      Half{data.part(middle, data.size() - middle), TreePlace::mirrored(group.size, group.rank)}};
  Pending sends(group.messages, data.bytes.size());
  up(group, halves, sends);
  down(group, halves, sends);
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
