#include "comm/courier.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "comm/communicator_state.h"
#include "comm/prompt_thread.h"
#include "comm/waiting.h"

namespace sibyl {
namespace {

// Pauses between looks grow from the first, which follows something that moved, to the longest. While nobody waits they
// are long: each look takes the processor and its caches from a rank that computes. A message that arrives meanwhile
// stays with the system, as far as its buffers reach, until somebody waits; a part of one that could not leave needs a
// look to.
struct Pauses {
  std::chrono::microseconds first, longest;
  int growth_percent;
};
constexpr Pauses awaited{std::chrono::microseconds{20}, std::chrono::microseconds{50}, 125};
constexpr Pauses unawaited_sends{std::chrono::microseconds{1000}, std::chrono::microseconds{2000}, 200};
constexpr Pauses unawaited{std::chrono::microseconds{1000}, std::chrono::microseconds{16000}, 200};

}  // namespace

struct Courier::Item {
  Ticket ticket = 0;
  comm::Messages::Swap message;
  std::size_t lane = 0;
  std::function<void()> arrived;
  std::vector<MPI_Request> requests;

  [[nodiscard]] bool sends() const { return !message.out.empty(); }
};

// Lanes are told apart by tags.
struct Courier::Post {
  explicit Post(MPI_Comm handle) : lanes{comm::Messages(handle, 0), comm::Messages(handle, 1)} {}
  std::array<comm::Messages, Courier::lanes> lanes;
};

Courier::Courier(Communicator group) : group_(std::move(group)), thread_([this] { run(); }) {}

Courier::~Courier() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  handed_in_.notify_all();
  thread_.join();
}

Courier::Ticket Courier::hand_in(Item item) {
  Ticket ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = item.ticket = ++last_;
    open_.insert(ticket);
    sent_ += static_cast<std::int64_t>(item.message.out.size());
    new_.push_back(std::move(item));
  }
  handed_in_.notify_all();
  return ticket;
}

Courier::Ticket Courier::send(std::span<const std::byte> data, int to, std::size_t lane,
                              std::function<void()> arrived) {
  return hand_in({0, {to, data, {}}, lane, std::move(arrived), {}});
}

Courier::Ticket Courier::receive(std::span<std::byte> data, int from, std::size_t lane) {
  return hand_in({0, {from, {}, data}, lane, {}, {}});
}

bool Courier::done(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  return !open_.contains(ticket);
}

void Courier::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  if (!open_.contains(ticket)) return;
  ++waiting_;
  handed_in_.notify_all();
  done_.wait(lock, [&] { return !open_.contains(ticket); });
  --waiting_;
}

std::int64_t Courier::bytes_sent() {
  const std::lock_guard lock(mutex_);
  return sent_;
}

// One look at all of them, as each makes MPI look for all messages anyway; those that are done are taken out. Whether
// any part of any was done.
bool Courier::move_on(std::vector<Item>& under_way, Post& post) {
  std::vector<MPI_Request> requests;
  for (Item& item : under_way) {
    if (item.requests.empty()) post.lanes.at(item.lane).post(item.message, item.requests);
    requests.insert(requests.end(), item.requests.begin(), item.requests.end());
  }
  int done = 0;  // chunks, this time; MPI_UNDEFINED (negative) of none
  std::vector<int> which(requests.size());
  MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &done, which.data(), MPI_STATUSES_IGNORE);
  std::vector<Ticket> finished;
  auto request = requests.begin();
  for (Item& item : under_way) {
    std::copy_n(request, item.requests.size(), item.requests.begin());
    request += static_cast<std::ptrdiff_t>(item.requests.size());
    if (std::ranges::any_of(item.requests, [](MPI_Request one) { return one != MPI_REQUEST_NULL; })) continue;
    if (item.arrived) item.arrived();
    finished.push_back(item.ticket);
  }
  if (finished.empty()) return done > 0;
  const auto is_finished = [&](const Item& item) { return std::ranges::count(finished, item.ticket) > 0; };
  std::erase_if(under_way, is_finished);
  {
    const std::lock_guard lock(mutex_);
    for (const Ticket ticket : finished) open_.erase(ticket);
  }
  done_.notify_all();
  return true;
}

void Courier::give_up(std::vector<Item>& under_way) {
  for (Item& item : under_way)
    for (MPI_Request& request : item.requests) {
      if (request == MPI_REQUEST_NULL) continue;
      if (!item.message.in.empty()) MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
}

void Courier::run() {
  comm::run_promptly();
  comm::precise_sleeps();
  Post post(group_.state_->handle);
  std::vector<Item> under_way;
  std::chrono::microseconds pause{};
  auto moved = std::chrono::steady_clock::now();  // the last time that something was done, or nobody waited
  std::unique_lock lock(mutex_);
  while (true) {
    const int waiting = waiting_;
    const auto called = [&] { return closing_ || !new_.empty() || waiting_ > waiting; };
    const auto since_moved = [&] { return std::chrono::steady_clock::now() - moved; };
    if (under_way.empty()) {
      handed_in_.wait(lock, [&] { return closing_ || !new_.empty(); });
    } else if (waiting > 0 && since_moved() < comm::longest_look && comm::may_look()) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    } else {
      const bool sends = std::ranges::any_of(under_way, &Item::sends);
      const Pauses& pauses = waiting > 0 ? awaited : sends ? unawaited_sends : unawaited;
      pause = std::clamp(pause, pauses.first, pauses.longest);
      const bool is_called = handed_in_.wait_for(lock, pause, called);
      pause = is_called ? std::chrono::microseconds{} : pause * pauses.growth_percent / 100;
    }
    if (waiting == 0) moved = std::chrono::steady_clock::now();
    if (closing_) return give_up(under_way);
    for (Item& item : new_) under_way.push_back(std::move(item));
    new_.clear();
    lock.unlock();
    const bool any_moved = move_on(under_way, post);
    lock.lock();
    if (any_moved) {
      pause = {};
      moved = std::chrono::steady_clock::now();
    }
  }
}

}  // namespace sibyl
