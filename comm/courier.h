// Messages between neighbours that travel while the caller computes: one thread hands them all to MPI and watches over
// them.
//
// While somebody waits the thread looks for messages as waiting.h says; while nobody does it sleeps longer between
// looks, so that it takes little from compute. It wakes at once when something is handed in.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "comm/communicator.h"

namespace sibyl {

class Courier {
 public:
  // Messages of one lane between two ranks arrive in the order in which they are sent, and must be received in it.
  static constexpr std::size_t lanes = 2;
  using Ticket = std::size_t;

  // Of a group whose communicator is the courier's alone from here on.
  explicit Courier(Communicator group);
  ~Courier();  // gives up what is not done
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  // By one thread. All return at once but wait(). The data must stay until the ticket is done; `arrived` is called
  // then, by the courier's thread.
  Ticket send(std::span<const std::byte> data, int to, std::size_t lane, std::function<void()> arrived = {});
  Ticket receive(std::span<std::byte> data, int from, std::size_t lane);
  [[nodiscard]] bool done(Ticket ticket);
  void wait(Ticket ticket);
  [[nodiscard]] std::int64_t bytes_sent();

 private:
  struct Item;
  struct Post;
  Ticket hand_in(Item item);
  void run();
  bool move_on(std::vector<Item>& under_way, Post& post);
  static void give_up(std::vector<Item>& under_way);

  Communicator group_;
  std::mutex mutex_;
  std::condition_variable handed_in_, done_;
  std::vector<Item> new_;
  std::set<Ticket> open_;  // handed in and not done
  Ticket last_ = 0;
  std::int64_t sent_ = 0;
  int waiting_ = 0;
  bool closing_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace sibyl
