// Two trees, each carrying half of the vector in chunks, all the way up with sums and down with results. Nothing waits
// for the other tree: a rank is an inner one of the first and a leaf of the second, and where it took their chunks in
// turns each tree went at the pace of the other's round trips, and both together took three times as long as their
// links. A broadcast is one tree downwards, a reduction one upwards.
#include <algorithm>
#include <functional>
#include <vector>

#include "comm/collectives.h"
#include "netmodel/collective/partition.h"

namespace sibyl::comm {
namespace {

using collective::TreePlace;

// Chunks of one tree on their way over one link. They are taken one by one by whoever receives them, so that no more
// than these ever wait there.
constexpr std::size_t window = 8;

// Messages under way, each with what is to be done when it is there.
class UnderWay {
 public:
  UnderWay(Messages& messages, std::size_t payload)
      : messages_(messages),
        payload_(payload),
        done_(payload > collective::tree_chunk_bytes ? Messages::Done::taken : Messages::Done::handed_over) {}

  void send(std::span<const std::byte> chunk, int to, int lane, std::function<void()> then) {
    add(messages_.post_send(chunk, to, done_, lane), std::move(then));
  }
  void receive(std::span<std::byte> chunk, int from, int lane, std::function<void()> then) {
    add(messages_.post_receive(chunk, from, lane), std::move(then));
  }
  std::span<std::byte> scratch(std::size_t bytes, std::size_t slot) { return messages_.scratch(bytes, slot); }

  // Until there are none, with those that come of them.
  void finish() {
    while (!requests_.empty()) {
      messages_.wait_for_some(requests_, payload_);
      std::vector<std::function<void()>> now;
      std::size_t left = 0;
      for (std::size_t i = 0; i < requests_.size(); ++i)
        if (requests_[i] == MPI_REQUEST_NULL) {
          now.push_back(std::move(then_[i]));
        } else {
          requests_[left] = requests_[i];
          if (left != i) then_[left] = std::move(then_[i]);
          ++left;
        }
      requests_.resize(left);
      then_.resize(left);
      for (const auto& then : now) then();
    }
  }

 private:
  void add(MPI_Request request, std::function<void()> then) {
    requests_.push_back(request);
    then_.push_back(std::move(then));
  }

  Messages& messages_;
  std::size_t payload_;
  Messages::Done done_;
  std::vector<MPI_Request> requests_;
  std::vector<std::function<void()>> then_;
};

// Of chunks in order, how many from the first on are done, in whatever order they are.
class Done {
 public:
  explicit Done(std::size_t chunks, bool all = false) : done_(chunks, all), count_(all ? chunks : 0) {}
  void add(std::size_t chunk) {
    done_[chunk] = true;
    while (count_ < done_.size() && done_[count_]) ++count_;
  }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::vector<bool> done_;
  std::size_t count_;
};

// One tree, as one rank sees it. Messages of a pair of ranks keep their order within a lane.
class Tree {
 public:
  // Without `reduce` nothing goes up, and what the root has goes to all; without `results` nothing comes down.
  Tree(UnderWay& messages, std::span<std::byte> data, const TreePlace& place, int lane, Reduce reduce,
       bool results = true)
      : messages_(messages),
        data_(data),
        chunks_((data.size() + most_bytes - 1) / most_bytes),
        parent_(place.parent),
        lane_(lane),
        reduce_(reduce),
        results_(results),
        handed_up_(chunks_, reduce == nullptr),
        from_parent_(chunks_) {
    for (const int child : place.children)
      if (child >= 0) children_.push_back({child, Done(chunks_), Done(chunks_)});
    if (children_.empty() || reduce == nullptr) summed_ = chunks_;
  }

  // Posts all that can be.
  void move_on() {
    if (reduce_ != nullptr) move_up();
    if (results_) move_down();
  }

 private:
  static constexpr std::size_t most_bytes = collective::tree_chunk_bytes;

  struct Child {
    int rank = -1;
    Done arrived, taken;                 // of its sums; of the results
    std::size_t awaited = 0, given = 0;  // the first chunk that is not yet
  };

  [[nodiscard]] std::span<std::byte> chunk(std::size_t index) const {
    return data_.subspan(index * most_bytes, std::min(most_bytes, data_.size() - index * most_bytes));
  }
  [[nodiscard]] std::span<std::byte> arrival(std::size_t child, std::size_t index) const {
    const std::size_t slot = (static_cast<std::size_t>(lane_) * 2 + child) * window + index % window;
    return messages_.scratch(chunk(index).size(), slot);
  }

  void send(std::size_t index, int to, Done& done) {
    messages_.send(chunk(index), to, lane_, [this, index, &done] {
      done.add(index);
      move_on();
    });
  }
  void receive(std::span<std::byte> into, std::size_t index, int from, Done& done) {
    messages_.receive(into, from, lane_, [this, index, &done] {
      done.add(index);
      move_on();
    });
  }

  void move_up() {
    const auto is_here = [&](const Child& child) { return child.arrived.count() > summed_; };
    for (; summed_ < chunks_ && std::ranges::all_of(children_, is_here); ++summed_)
      for (std::size_t c = 0; c < children_.size(); ++c) reduce_(chunk(summed_), arrival(c, summed_));
    for (std::size_t c = 0; c < children_.size(); ++c)
      for (Child& child = children_[c]; child.awaited < std::min(chunks_, summed_ + window); ++child.awaited)
        receive(arrival(c, child.awaited), child.awaited, child.rank, child.arrived);
    if (parent_ < 0) return;
    for (; next_up_ < std::min(summed_, handed_up_.count() + window); ++next_up_) send(next_up_, parent_, handed_up_);
  }

  // A result is received over the sum that was sent up.
  void move_down() {
    if (parent_ >= 0)
      for (; next_down_ < std::min(handed_up_.count(), from_parent_.count() + window); ++next_down_)
        receive(chunk(next_down_), next_down_, parent_, from_parent_);
    const std::size_t ready = parent_ >= 0 ? from_parent_.count() : summed_;
    for (Child& child : children_)
      for (; child.given < std::min(ready, child.taken.count() + window); ++child.given)
        send(child.given, child.rank, child.taken);
  }

  UnderWay& messages_;
  std::span<std::byte> data_;
  std::size_t chunks_;
  int parent_, lane_;
  Reduce reduce_;
  bool results_;
  std::vector<Child> children_;
  std::size_t summed_ = 0;  // chunks that have all that comes from below
  Done handed_up_, from_parent_;
  std::size_t next_up_ = 0, next_down_ = 0;
};

// In the tree of which `root` is the root.
TreePlace place_below(const Group& group, int root) {
  const auto actual = [&](int relative) { return relative < 0 ? -1 : (relative + root) % group.size; };
  TreePlace place = TreePlace::of(group.size, (group.rank - root + group.size) % group.size);
  place.parent = actual(place.parent);
  for (int& child : place.children) child = actual(child);
  return place;
}

}  // namespace

void tree_all_reduce(const Group& group, const Elements& data) {
  const std::size_t middle = (data.size() + 1) / 2;
  const Reduce reduce = reduce_of(data.type, group.reduction);
  UnderWay messages(group.messages, data.bytes.size());
  Tree first(messages, data.part(0, middle).bytes, TreePlace::of(group.size, group.rank), 0, reduce);
  Tree second(messages, data.part(middle, data.size() - middle).bytes, TreePlace::second(group.size, group.rank), 1,
              reduce);
  first.move_on();
  second.move_on();
  messages.finish();
}

void tree_broadcast(const Group& group, std::span<std::byte> data, int root) {
  UnderWay messages(group.messages, data.size());
  Tree tree(messages, data, place_below(group, root), 0, nullptr);
  tree.move_on();
  messages.finish();
}

void tree_reduce(const Group& group, const Elements& data, int root) {
  UnderWay messages(group.messages, data.bytes.size());
  Tree tree(messages, data.bytes, place_below(group, root), 0, reduce_of(data.type, group.reduction), false);
  tree.move_on();
  messages.finish();
}

}  // namespace sibyl::comm
