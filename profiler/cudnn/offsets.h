// Where the elements of strided operands lie, as frameworks' kernels find out: dimensions that follow one another in
// both operands are one, and indices are 32 bits wide where that is enough, divided by multiplication (Granlund and
// Montgomery, Division by Invariant Integers using Multiplication, 1994). For the host and the device.
#pragma once

#include <cstdint>

#include "profiler/cudnn/kernels.h"

#ifdef __CUDACC__
#define SIBYL_ANYWHERE __host__ __device__
#else
#define SIBYL_ANYWHERE
#endif

namespace sibyl::cudnn {

// Division of n < 2^31 by a number from 1 to 2^31.
class Divider {
 public:
  Divider() = default;
  explicit Divider(std::uint32_t by) : by_(by) {
    while ((std::uint64_t{1} << shift_) < by) ++shift_;
    multiplier_ = static_cast<std::uint32_t>((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift_) - by) / by + 1);
  }
  [[nodiscard]] SIBYL_ANYWHERE std::uint32_t by() const { return by_; }
  [[nodiscard]] SIBYL_ANYWHERE std::uint32_t quotient(std::uint32_t n) const {
#ifdef __CUDA_ARCH__
    return (__umulhi(n, multiplier_) + n) >> shift_;
#else
    return (static_cast<std::uint32_t>(std::uint64_t{n} * multiplier_ >> 32) + n) >> shift_;
#endif
  }

 private:
  std::uint32_t by_ = 1, multiplier_ = 1, shift_ = 0;
};

template <class Index>
struct Place {
  Index a, b;
};

// Of any size. One dimension at least.
struct WideOffsets {
  Strides strides;

  [[nodiscard]] SIBYL_ANYWHERE Place<std::int64_t> at(std::int64_t i) const {
    std::int64_t rest = i, a = 0, b = 0;
    for (int d = strides.rank - 1; d > 0; --d) {
      const std::int64_t next = rest / strides.extent[d], index = rest - next * strides.extent[d];
      a += index * strides.a[d], b += index * strides.b[d];
      rest = next;
    }
    return {a + rest * strides.a[0], b + rest * strides.b[0]};
  }
};

// Where the number of elements and all offsets are below 2^31.
struct NarrowOffsets {
  int rank = 0;
  Divider extent[most_dimensions];
  std::uint32_t a[most_dimensions] = {}, b[most_dimensions] = {};

  explicit NarrowOffsets(const Strides& s) : rank(s.rank) {
    for (int d = 0; d < rank; ++d) {
      extent[d] = Divider(static_cast<std::uint32_t>(s.extent[d]));
      a[d] = static_cast<std::uint32_t>(s.a[d]), b[d] = static_cast<std::uint32_t>(s.b[d]);
    }
  }
  [[nodiscard]] SIBYL_ANYWHERE Place<std::uint32_t> at(std::int64_t i) const {
    std::uint32_t rest = static_cast<std::uint32_t>(i), to_a = 0, to_b = 0;
    for (int d = rank - 1; d > 0; --d) {
      const std::uint32_t next = extent[d].quotient(rest), index = rest - next * extent[d].by();
      to_a += index * a[d], to_b += index * b[d];
      rest = next;
    }
    return {to_a + rest * a[0], to_b + rest * b[0]};
  }
};

// The same elements in as few dimensions as can be, but one at least. No extent is 0.
inline Strides joined(const Strides& s) {
  Strides j;
  for (int d = 0; d < s.rank; ++d) {
    if (s.extent[d] == 1) continue;
    const int last = j.rank - 1;
    if (last >= 0 && j.a[last] == s.extent[d] * s.a[d] && j.b[last] == s.extent[d] * s.b[d])
      j.extent[last] *= s.extent[d];
    else
      j.extent[j.rank++] = s.extent[d];
    j.a[j.rank - 1] = s.a[d], j.b[j.rank - 1] = s.b[d];
  }
  if (j.rank == 0) j.rank = 1, j.extent[0] = 1;
  return j;
}

inline bool is_narrow(const Strides& s) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  std::int64_t count = 1, a = 0, b = 0;
  for (int d = 0; d < s.rank; ++d) {
    count *= s.extent[d];
    a += (s.extent[d] - 1) * s.a[d], b += (s.extent[d] - 1) * s.b[d];
  }
  return count < most && a < most && b < most;
}

// Calls `f` with the quickest way to find these elements.
template <class F>
void with_offsets(const Strides& strides, F&& f) {
  const Strides few = joined(strides);
  if (is_narrow(few)) return f(NarrowOffsets(few));
  return f(WideOffsets{few});
}

}  // namespace sibyl::cudnn
