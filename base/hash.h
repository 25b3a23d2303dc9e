// A hash of many values that is good enough to stand for them: any two of a million different lists collide with a
// chance of about 10^-7. Not against those who look for collisions.
#pragma once

#include <bit>
#include <cstdint>

namespace sibyl {

class Hash {
 public:
  constexpr Hash& add(std::uint64_t value) {
    // MurmurHash3's finalizer over each value, then rotated into the sum.
    value ^= value >> 33U;
    value *= 0xFF51AFD7ED558CCDULL;
    value ^= value >> 33U;
    value *= 0xC4CEB9FE1A85EC53ULL;
    value ^= value >> 33U;
    hash_ = (std::rotl(hash_, 23) ^ value) * 0x9E3779B97F4A7C15ULL + 0x632BE59BD9B4E019ULL;
    return *this;
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return hash_ ^ (hash_ >> 32U); }

 private:
  std::uint64_t hash_ = 0x2545F4914F6CDD1DULL;
};

}  // namespace sibyl
