// Nonblocking messages over one MPI communicator, cut into chunks, counted, and waited for.
//
// Payloads are cut into chunks of at most chunk_bytes: an int counts them whatever the payload's size, and the first
// chunk can be worked on while the next is in flight. Messages between two ranks with one tag keep their order (MPI's
// promise), so chunks need no numbers.
//
// Chunks are short enough for MPI to send them without asking the receiver first (Open MPI over TCP: 64 KiB with its
// header). A longer one waits for an answer, and the answer for the data that queues before it on its way back: a ring
// whose ranks had fallen out of step used a wire of 1 Gb/s one way at a time, and took 1.8 times as long.
//
// Waiting sleeps between polls where somebody else computes on the processor (waiting.h). Only for a payload of at most
// eager_bytes does it poll for a while first even there: such a message over TCP is there within some 10 us.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace sibyl::comm {

constexpr std::size_t chunk_bytes = 60 * 1024;
constexpr std::size_t eager_bytes = 32 * 1024;

class Messages {
 public:
  // Messages of different tags do not meet.
  explicit Messages(MPI_Comm communicator, int tag = 0) : communicator_(communicator), tag_(tag) {}

  // When a send is done: once the library has the bytes, or once the receiver takes them.
  enum class Done { handed_over, taken };

  // One message each. Those of different lanes do not meet.
  MPI_Request post_send(std::span<const std::byte> chunk, int to, Done done = Done::handed_over, int lane = 0);
  MPI_Request post_receive(std::span<std::byte> chunk, int from, int lane = 0);
  // `bytes`: of the payload they belong to.
  void wait(std::span<MPI_Request> requests, std::size_t bytes);
  void wait(MPI_Request& request, std::size_t bytes) { wait(std::span(&request, 1), bytes); }
  // Until some are done; those are null then.
  void wait_for_some(std::span<MPI_Request> requests, std::size_t bytes);

  // Whole payloads.
  void send(std::span<const std::byte> payload, int to);
  void receive(std::span<std::byte> payload, int from);
  // Sends `out` and receives as many bytes as `in_bytes`, chunk by chunk; `arrived(offset, chunk)` is called for each
  // in order while later ones are in flight. The chunk lives in a scratch buffer until the call returns.
  void exchange(std::span<const std::byte> out, int to, std::size_t in_bytes, int from,
                const std::function<void(std::size_t, std::span<const std::byte>)>& arrived);
  // The same, straight into `in`.
  void exchange(std::span<const std::byte> out, int to, std::span<std::byte> in, int from);
  // Whole payloads to and from several ranks, all under way at once. Of more than one chunk they must have been taken:
  // a rank that went on while its bytes wait to leave would send its next ones beside them, and whoever waits for the
  // first would get them late, be late itself, and find everything there the next time. So ranks took turns at being
  // late, and two exchanges in a row, of neighbours along the height and then along the width, took 43 ms over 100 Mb/s
  // for 28 (docs/validation/emulated.md).
  struct Swap {
    int peer = 0;
    std::span<const std::byte> out;
    std::span<std::byte> in;
  };
  void swap(std::span<const Swap> swaps);
  // The same begun: what is left of it is appended to `requests`.
  void post(const Swap& swap, std::vector<MPI_Request>& requests, Done done = Done::handed_over);

  [[nodiscard]] std::int64_t bytes_sent() const { return sent_; }
  // At least so many bytes of scratch; `slot` tells apart buffers in use at once.
  std::span<std::byte> scratch(std::size_t bytes, std::size_t slot);

 private:
  // `place(index, slot)` is where a chunk arrives; `slot` tells apart those in flight at once.
  template <class Place, class Arrived>
  void exchange_chunks(std::span<const std::byte> out, int to, std::size_t in_bytes, int from, const Place& place,
                       const Arrived& arrived);

  MPI_Comm communicator_;
  int tag_;
  std::int64_t sent_ = 0;
  std::vector<std::vector<std::byte>> scratch_;
};

}  // namespace sibyl::comm
