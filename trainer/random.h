// Numbers that depend on what they are for and not on who draws them: value i of the stream that a name and numbers
// seed. So every rank, and any number of ranks, draws the same.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace sibyl::trainer {

// The finaliser of SplitMix64 (Steele, Lea & Flood, 2014): every bit of the result depends on every bit of x.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, std::string_view name, std::uint64_t number = 0) : state_(mixed(seed)) {
    for (const char c : name) state_ = mixed(state_ ^ static_cast<unsigned char>(c));
    state_ = mixed(state_ ^ number);
  }
  constexpr std::uint64_t bits() { return mixed(state_ + counter_++ * 0x9e3779b97f4a7c15ULL); }
  // In [-1, 1), 24 bits: exact in f32.
  constexpr float symmetric() { return static_cast<float>(static_cast<double>(bits() >> 40) * 0x1p-23 - 1.0); }
  // In [0, bound).
  constexpr std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(bound));
  }

 private:
  std::uint64_t state_;
  std::uint64_t counter_ = 0;
};

// A symmetric() number times this has unit variance.
inline const float unit_variance = std::sqrt(3.0F);

// A factor of mean 1 with this relative standard deviation: normal (Box and Muller, 1958) in the logarithm.
inline double log_normal(RandomStream& stream, double spread) {
  if (spread <= 0) return 1.0;
  const auto uniform = [&] { return (static_cast<double>(stream.bits() >> 11) + 0.5) * 0x1p-53; };
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  const double normal = radius * std::cos(2.0 * std::numbers::pi * uniform());
  const double variance = std::log1p(spread * spread);
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

}  // namespace sibyl::trainer
