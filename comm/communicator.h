// Collectives over MPI point-to-point messages, each byte counted.
//
// Why not MPI_Allreduce: Sibyl must know exactly which bytes a rank sends and by which algorithm, and communication
// must run beside compute without a spinning core. So the ring, recursive-doubling and tree algorithms are written
// here over MPI_Isend/MPI_Irecv with the very partition that sibyl::bytes_sent() predicts, and waiting leaves the
// processor to compute (waiting.h).
//
// A Communicator is used by one thread at a time; buffers are the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/elements.h"
#include "netmodel/network.h"

namespace sibyl {

// What becomes of the ranks' elements at one place.
enum class Reduction { sum, maximum };

class Communicator {
 public:
  // Over MPI_COMM_WORLD, which the caller has initialised: with MPI_THREAD_MULTIPLE where several threads communicate,
  // each by a Communicator or a Courier of its own.
  static Communicator world();
  // The group of these world ranks, in this order; must be called by each of them in the same order.
  [[nodiscard]] Communicator subgroup(const std::vector<int>& ranks) const;
  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;

  // Sums of two-byte numbers are rounded to their type at each addition.
  void all_reduce(const Elements& data, Algorithm algorithm, Reduction reduction = Reduction::sum);
  void all_reduce(std::span<float> data, Algorithm algorithm, Reduction reduction = Reduction::sum) {
    all_reduce(elements(data), algorithm, reduction);
  }
  void reduce_scatter(const Elements& data, Algorithm algorithm);  // own part of `data` holds the sum
  void reduce_scatter(std::span<float> data, Algorithm algorithm) { reduce_scatter(elements(data), algorithm); }
  void all_gather(std::span<float> data, Algorithm algorithm);  // own part is sent, the rest filled
  // The same of elements of any type, `width` bytes each.
  void all_gather(std::span<std::byte> data, std::size_t width);
  // Part i of `out` goes to rank i, part i of `in` comes from it; all parts have one size.
  void all_to_all(std::span<const std::byte> out, std::span<std::byte> in);
  void broadcast(std::span<std::byte> data, int root);
  // The sum is `root`'s; `data` of others is left with the sums of some.
  void reduce(const Elements& data, int root);
  void reduce(std::span<float> data, int root) { reduce(elements(data), root); }
  // Messages to several ranks, and from them, all under way at once. A rank may appear once.
  struct Swap {
    int peer = 0;
    std::span<const std::byte> out;
    std::span<std::byte> in;
  };
  void swap(std::span<const Swap> swaps);
  void send(std::span<const std::byte> data, int to);
  void receive(std::span<std::byte> data, int from);
  // Which algorithm automatic is for an all-reduce of so many bytes.
  [[nodiscard]] Algorithm chosen(std::int64_t bytes) const;
  // Ends the processes of all its ranks with this exit code, whatever they wait for.
  [[noreturn]] void end_all(int code) const;
  void barrier();                                                        // not counted
  [[nodiscard]] std::vector<double> gather_doubles(double value) const;  // on every rank; not counted

  [[nodiscard]] std::int64_t bytes_sent() const;      // by this rank since construction
  [[nodiscard]] std::int64_t bytes_gathered() const;  // those of them that all_gather sent
  // The partition reduce_scatter and all_gather use: rank i owns [begin, end) of `elements`.
  static std::pair<std::int64_t, std::int64_t> part(std::int64_t elements, int size, int rank);

 private:
  friend class Courier;
  struct State;
  explicit Communicator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sibyl
