// What one rank sends in one training step, by what it is sent for. Plans count it (plan.h) and trainers measure it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sibyl {

struct BytesSent {
  std::int64_t gradients = 0;   // sums over replicas, over parts of a sample, over stages that hold one parameter
  std::int64_t parameters = 0;  // that ranks hold by parts, gathered
  std::int64_t exchanges = 0;   // activations between operations, and their gradients
  std::int64_t links = 0;       // the same between pipeline stages
  std::int64_t norms = 0;       // squares, for clipping and for optimizers that want whole tensors' norms

  [[nodiscard]] std::int64_t total() const { return gradients + parameters + exchanges + links + norms; }
  bool operator==(const BytesSent&) const = default;
  friend BytesSent operator-(const BytesSent& a, const BytesSent& b) {
    return {a.gradients - b.gradients, a.parameters - b.parameters, a.exchanges - b.exchanges, a.links - b.links,
            a.norms - b.norms};
  }
};

// As files spell them.
struct BytesSentPart {
  std::string_view key;
  std::int64_t BytesSent::* value;
};
inline constexpr std::array<BytesSentPart, 5> bytes_sent_parts = {{{"gradients", &BytesSent::gradients},
                                                                   {"parameters", &BytesSent::parameters},
                                                                   {"exchanges", &BytesSent::exchanges},
                                                                   {"links", &BytesSent::links},
                                                                   {"norms", &BytesSent::norms}}};

// What one rank copies in one step between its device and host memory or storage. Apart from what is sent: no other
// rank sees it.
struct OffloadedBytes {
  std::int64_t in = 0, out = 0;  // to the device; from it

  bool operator==(const OffloadedBytes&) const = default;
  friend OffloadedBytes operator-(const OffloadedBytes& a, const OffloadedBytes& b) {
    return {a.in - b.in, a.out - b.out};
  }
  OffloadedBytes& operator+=(const OffloadedBytes& other) {
    in += other.in;
    out += other.out;
    return *this;
  }
};

}  // namespace sibyl
