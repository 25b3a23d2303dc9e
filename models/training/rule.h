// What training does with an operation: the values that its rule gives (training.h), and what rules write them with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace sibyl {

enum class Pass { forward, backward };

// Where the framework runs: PyTorch keeps different things on each (dropout's mask is f32 on the CPU, bool on CUDA).
enum class Backend { cpu, cuda };

struct Work {
  Flops flops;
  Bytes read;
  Bytes written;
  bool operator==(const Work&) const = default;
};
inline Work operator+(Work a, const Work& b) { return {a.flops + b.flops, a.read + b.read, a.written + b.written}; }

// A tensor kept from forward to backward.
struct Saved {
  enum class What {
    input,
    output,
    extra
  };  // an operand, a result, or a tensor that is neither (mask, indices, statistics)
  What what = What::input;
  std::size_t index = 0;  // of the operand or result
  Bytes bytes;            // of an extra
  bool operator==(const Saved&) const = default;
};

struct TrainingRule {
  Work forward;
  Work backward;
  std::vector<Saved> saved;
  bool view = false;  // the results share the first operand's memory
  bool operator==(const TrainingRule&) const = default;
};

namespace rules {

constexpr double index_bytes = 8;
constexpr double mask_bytes = 1;

// FLOPs, and bytes read and written.
inline Work work(double flops, double read, double written) { return {Flops{flops}, Bytes{read}, Bytes{written}}; }

inline Saved saved_input(std::size_t i) { return {Saved::What::input, i, {}}; }
inline Saved saved_output(std::size_t i = 0) { return {Saved::What::output, i, {}}; }
inline Saved saved_extra(double bytes) { return {Saved::What::extra, 0, Bytes{bytes}}; }

}  // namespace rules
}  // namespace sibyl
