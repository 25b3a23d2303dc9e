#include "comm/messages.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/prompt_thread.h"
#include "comm/waiting.h"

namespace sibyl::comm {
namespace {

constexpr int polls_of_small = 200;
constexpr int polls_of_large = 2;
// Sleeps become longer up to 50 us, and then with what was waited: what a wait is prolonged by is small beside it, and
// ranks that share processors keep these less busy with looking (four over 100 Mb/s 38 instead of 47 % of two).
constexpr std::chrono::microseconds first_sleep{20}, short_sleep{50}, longest_sleep{200};
constexpr int part_of_wait = 16;
// Chunks of one payload, each way: as many as the wire carries in `longest_queue`, and no more, for what computation
// waits for queues behind them. With 16 everywhere, halos beside an all-reduce made steps over 100 Mb/s up to 4 %
// longer; with 4 everywhere, steps over a wire as fast as memory were 4 % longer.
constexpr std::size_t fewest_in_flight = 4, in_flight = 16;
constexpr double longest_queue = 2e-3;  // seconds

// How many, by how fast they have been arriving.
class Window {
 public:
  [[nodiscard]] std::size_t after(std::size_t arrived) {
    const auto now = std::chrono::steady_clock::now();
    if (arrived == 1) first_ = now;
    const double seconds = std::chrono::duration<double>(now - first_).count();
    const double in_time = static_cast<double>(arrived - 1) * longest_queue;
    if (in_time >= static_cast<double>(in_flight) * seconds) return arrived == 1 ? fewest_in_flight : in_flight;
    return std::max(fewest_in_flight, static_cast<std::size_t>(in_time / seconds));
  }

 private:
  std::chrono::steady_clock::time_point first_;
};

std::size_t chunks(std::size_t bytes) { return (bytes + chunk_bytes - 1) / chunk_bytes; }

template <class Byte>
std::span<Byte> chunk(std::span<Byte> payload, std::size_t index) {
  const std::size_t begin = index * chunk_bytes;
  return payload.subspan(begin, std::min(chunk_bytes, payload.size() - begin));
}

// Looks until `done`, for messages of a payload of `bytes`.
template <class Look>
void wait_until(std::size_t bytes, const Look& done) {
  precise_sleeps();
  const int polls_before_sleep = bytes <= eager_bytes ? polls_of_small : polls_of_large;
  const auto begin = std::chrono::steady_clock::now();
  auto may_look_since = begin;
  std::chrono::microseconds pause = first_sleep;
  for (int polls = 0; !done(); ++polls) {
    if (polls < polls_before_sleep) continue;
    const auto now = std::chrono::steady_clock::now();
    if (!may_look()) {
      may_look_since = now;
    } else if (now - may_look_since < longest_look) {
      std::this_thread::yield();  // to the rank's other threads
      continue;
    }
    std::this_thread::sleep_for(pause);
    const auto part = std::chrono::duration_cast<std::chrono::microseconds>(now - begin) / part_of_wait;
    pause = std::max(std::min(pause + pause / 4, short_sleep), std::min(part, longest_sleep));
  }
}

}  // namespace

MPI_Request Messages::post_send(std::span<const std::byte> payload, int to, Done done, int lane) {
  MPI_Request request = MPI_REQUEST_NULL;
  const auto send = done == Done::taken ? MPI_Issend : MPI_Isend;
  send(payload.data(), static_cast<int>(payload.size()), MPI_BYTE, to, tag_ + lane, communicator_, &request);
  sent_ += static_cast<std::int64_t>(payload.size());
  return request;
}

MPI_Request Messages::post_receive(std::span<std::byte> payload, int from, int lane) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(payload.data(), static_cast<int>(payload.size()), MPI_BYTE, from, tag_ + lane, communicator_, &request);
  return request;
}

void Messages::wait(std::span<MPI_Request> requests, std::size_t bytes) {
  wait_until(bytes, [&] {
    int done = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
  });
}

void Messages::wait_for_some(std::span<MPI_Request> requests, std::size_t bytes) {
  std::vector<int> which(requests.size());
  wait_until(bytes, [&] {
    int done = 0;
    MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &done, which.data(), MPI_STATUSES_IGNORE);
    return done != 0;
  });
}

void Messages::send(std::span<const std::byte> payload, int to) {
  std::vector<MPI_Request> requests(std::min(in_flight, chunks(payload.size())), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < chunks(payload.size()); ++i) {
    MPI_Request& slot = requests[i % requests.size()];
    wait(slot, payload.size());
    slot = post_send(chunk(payload, i), to);
  }
  wait(requests, payload.size());
}

void Messages::receive(std::span<std::byte> payload, int from) { exchange({}, from, payload, from); }

void Messages::exchange(std::span<const std::byte> out, int to, std::span<std::byte> in, int from) {
  exchange_chunks(
      out, to, in.size(), from, [&](std::size_t i, std::size_t) { return chunk(in, i); },
      [](std::size_t, std::span<const std::byte>) {});
}

void Messages::exchange(std::span<const std::byte> out, int to, std::size_t in_bytes, int from,
                        const std::function<void(std::size_t, std::span<const std::byte>)>& arrived) {
  const auto place = [&](std::size_t i, std::size_t slot) {
    return scratch(std::min(chunk_bytes, in_bytes - i * chunk_bytes), slot);
  };
  exchange_chunks(out, to, in_bytes, from, place, arrived);
}

// Both ways are full before anything is waited for: of two ranks that send each other all they have, each would else
// wait for the other's chunk before it sends its own next one.
template <class Place, class Arrived>
void Messages::exchange_chunks(std::span<const std::byte> out, int to, std::size_t in_bytes, int from,
                               const Place& place, const Arrived& arrived) {
  const std::size_t bytes = std::max(out.size(), in_bytes);
  const std::size_t outgoing = chunks(out.size()), incoming = chunks(in_bytes);
  std::vector<MPI_Request> sends(std::min(in_flight, outgoing), MPI_REQUEST_NULL);
  std::vector<MPI_Request> receives(std::min(in_flight, incoming), MPI_REQUEST_NULL);
  const auto post = [&](std::size_t i) {
    const std::size_t slot = i % receives.size();
    receives[slot] = post_receive(place(i, slot), from);
  };
  for (std::size_t i = 0; i < receives.size(); ++i) post(i);
  std::size_t next_send = 0;
  const auto send_until = [&](std::size_t end) {
    for (; next_send < std::min(end, outgoing); ++next_send) {
      MPI_Request& free = sends[next_send % sends.size()];
      wait(free, bytes);
      free = post_send(chunk(out, next_send), to);
    }
  };
  send_until(fewest_in_flight);
  Window window;
  for (std::size_t i = 0; i < incoming; ++i) {
    const std::size_t slot = i % receives.size();
    wait(receives[slot], bytes);
    send_until(i + 1 + window.after(i + 1));
    arrived(i * chunk_bytes, place(i, slot));
    if (i + receives.size() < incoming) post(i + receives.size());
  }
  send_until(outgoing);
  wait(sends, bytes);
}

void Messages::swap(std::span<const Swap> swaps) {
  std::vector<MPI_Request> requests;
  std::size_t largest = 0;
  for (const Swap& one : swaps) {
    largest = std::max({largest, one.out.size(), one.in.size()});
    post({one.peer, {}, one.in}, requests);
  }
  for (const Swap& one : swaps) post({one.peer, one.out, {}}, requests, Done::taken);
  wait(requests, largest);
}

void Messages::post(const Swap& swap, std::vector<MPI_Request>& requests, Done done) {
  for (std::size_t i = 0; i < chunks(swap.in.size()); ++i)
    requests.push_back(post_receive(chunk(swap.in, i), swap.peer));
  for (std::size_t i = 0, count = chunks(swap.out.size()); i < count; ++i)
    requests.push_back(post_send(chunk(swap.out, i), swap.peer, i > 0 && i + 1 == count ? done : Done::handed_over));
}

std::span<std::byte> Messages::scratch(std::size_t bytes, std::size_t slot) {
  if (scratch_.size() <= slot) scratch_.resize(slot + 1);
  if (scratch_[slot].size() < bytes) scratch_[slot].resize(std::max(bytes, chunk_bytes));
  return std::span(scratch_[slot]).first(bytes);
}

}  // namespace sibyl::comm
